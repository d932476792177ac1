// Which of the two publishes of a stream is on air, as reported by the media core, and switching between them on
// request.
import type { Logger } from "pino";
import { NoStandby, UnknownRecord } from "../../errors.ts";
import { inTime } from "../../in-time.ts";
import type { OnAirChanged } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { PublishingMetrics } from "../../metrics.ts";
import type { RunningPublish } from "../publishes.ts";
import { identityOf } from "../record.ts";

/** How long a switch waits for the media core, ms; it takes longer when the publish to take over sends no keyframe. */
const SWITCH_LIMIT_MS = 1_000;

/** The result of a switch. */
export interface Switched {
  /** The publish that is on air, or will be. */
  readonly clientId: number;
  /** False: it takes over at its next keyframe. */
  readonly onAir: boolean;
}

export interface OnAir {
  /** Takes the event of the media core. */
  note(event: OnAirChanged): void;
  /** The client id of the publish that `switchTo` would put on air. Throws as `switchTo` rejects. */
  switchTarget(organisationId: string, streamId: string, to: number | null): number;
  /** Puts `to` on air; null: the stream's publish on standby. Rejects with `UnknownRecord` when the stream
   *  has no such publish, and with `NoStandby` when none is on standby. */
  switchTo(organisationId: string, streamId: string, to: number | null): Promise<Switched>;
}

export function createOnAir(deps: {
  readonly publishes: {
    readonly running: () => readonly RunningPublish[];
    readonly find: (clientId: number) => RunningPublish | undefined;
  };
  readonly media: () => Pick<Media, "switchTo">;
  readonly metrics: Pick<PublishingMetrics, "countTakeover">;
  readonly log: Logger;
}): OnAir {
  const { publishes, media, metrics, log } = deps;
  /** By client id: callbacks that run once that publish is on air. */
  const awaited = new Map<number, Set<() => void>>();

  return {
    note({ clientId, onAir, other, cause }) {
      const publish = publishes.find(clientId);
      if (publish === undefined) return;
      publish.onAir = onAir;
      if (onAir) for (const resolve of awaited.get(clientId) ?? []) resolve();
      if (cause === "began" && onAir) return;
      log.info({ ...identityOf(publish.intent), other, cause }, onAir ? "publish is on air" : "publish stands by");
      if (onAir) metrics.countTakeover(cause);
    },
    switchTarget: (organisationId, streamId, to) => meant(organisationId, streamId, to).clientId,
    async switchTo(organisationId, streamId, to) {
      const publish = meant(organisationId, streamId, to);
      const { clientId } = publish;
      // The core is also told when the publish is already on air: the other one may be about to take over.
      if (publish.onAir) media().switchTo(clientId);
      else await switched(clientId);
      return { clientId, onAir: publish.onAir };
    },
  };

  function meant(organisationId: string, streamId: string, to: number | null): RunningPublish {
    const isOf = ({ intent }: RunningPublish) =>
      intent.organisationId === organisationId && intent.streamId === streamId;
    const all = publishes.running().filter(isOf);
    const publish = to === null ? all.find(({ onAir }) => !onAir) : all.find(({ clientId }) => clientId === to);
    if (publish !== undefined) return publish;
    throw to === null ? new NoStandby() : new UnknownRecord("session");
  }

  async function switched(clientId: number): Promise<void> {
    const waiting = awaited.get(clientId) ?? new Set();
    awaited.set(clientId, waiting);
    let tookOver = () => {};
    const takeover = new Promise<void>((resolve) => {
      tookOver = resolve;
    });
    waiting.add(tookOver);
    media().switchTo(clientId);
    await inTime(SWITCH_LIMIT_MS, takeover, undefined);
    waiting.delete(tookOver);
    if (waiting.size === 0) awaited.delete(clientId);
  }
}
