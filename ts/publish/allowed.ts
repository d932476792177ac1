// A publish that admission has allowed: it is started or dropped, in the same turn of the event loop, and either way its
// customer receives publish_done in the end.
import type { Logger } from "pino";
import { NO_MEDIA, type PublishEnded } from "../media/events.ts";
import type { Hold } from "../media/hold.ts";
import type { OfferSummary } from "../media.ts";
import { type Denied, denied } from "./denials.ts";
import { type Ending, endingOf } from "./ending/ending.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import type { Ends } from "./ends.ts";
import type { PublishEvents } from "./publish-events.ts";
import type { AskedPublish, Publishes, RunningPublish, StartingPublish } from "./publishes.ts";
import { identityOf } from "./record.ts";
import type { Holds } from "./upstreams/holds.ts";

/** The SDP answer of a WHIP publish; null for RTMP. */
type Answer = string | null;

export interface Allowed {
  readonly outcome: "allowed";
  readonly publish: StartingPublish;
  /** Starts the publish, and its media by `open`, immediately. Denied when it was stopped meanwhile, or when `open` has
   *  thrown; it has then ended. */
  start<Opened extends Answer>(open: (hold: Hold) => Opened): Promise<Started<Opened> | Denied>;
  /** Ends it without media: publish_done follows. */
  drop(): Promise<void>;
}

export interface Started<Opened extends Answer = Answer> {
  readonly outcome: "started";
  readonly answer: Opened;
}

/** `offer`: of a WHIP client; null when it made none. */
export type Allow = (publish: StartingPublish, offer: OfferSummary | null) => Allowed;

export function createAllow(deps: {
  readonly publishes: Pick<Publishes, "answered" | "freeName" | "beside" | "start" | "onEnded">;
  readonly ends: Pick<Ends, "record">;
  readonly holds: Pick<Holds<RunningPublish>, "lostBefore">;
  readonly events: Pick<PublishEvents, "emit">;
  readonly log: Logger;
  readonly isRevoked: (publish: AskedPublish) => boolean;
  readonly startUpdates: (publish: StartingPublish) => void;
  /** As if the media core had reported it. */
  readonly end: (event: PublishEnded) => Promise<void>;
}): Allow {
  const { publishes, ends, holds, events, log, isRevoked } = deps;

  async function endUnopened(publish: StartingPublish, reason: RecordedEndReason, ending: Ending | null) {
    const { clientId, place, intent } = publish;
    place.release();
    const recording = ends.record({ clientId, reason, ending, counters: null, epoch: intent.epoch });
    publishes.freeName(publish, recording.tried);
    await recording.done;
  }

  function running(publish: StartingPublish): Hold {
    const { clientId, intent, place, holdMs: windowMs } = publish;
    const lost = holds.lostBefore(intent);
    const other = publishes.beside(intent);
    const { addedUpstreams = new Map() } = other ?? lost ?? {};
    publishes.start({ ...publish, continues: null, onAir: other?.onAir !== true, addedUpstreams, ownLimitKbps: 0 });
    place.started();
    publishes.onEnded(clientId, place.release);
    deps.startUpdates(publish);
    const silence = publish.silenceMs === null ? {} : { silenceMs: publish.silenceMs };
    return { windowMs, continues: lost?.clientId ?? null, ...silence, ...(other && { beside: other.clientId }) };
  }

  return (publish, offer) => {
    const { clientId } = publish;
    let isUsed = false;
    const use = () => {
      if (isUsed) throw new Error(`publish ${clientId} was started or dropped before`);
      isUsed = true;
    };
    const allowed: Allowed = {
      outcome: "allowed",
      publish,
      async start(open) {
        use();
        // A token may have been revoked after it was verified, while the customer was being asked.
        const stopped = publishes.answered(clientId) ?? (isRevoked(publish) ? endingOf("token_revoked") : null);
        if (stopped !== null) {
          await endUnopened(publish, "kicked", stopped);
          const { intent, protocol } = publish;
          const refusal = denied("stopped", stopped.reason);
          const request = { name: Buffer.from(intent.name), address: intent.address, protocol };
          events.emit({ kind: "denied", refusal: { ...refusal, about: identityOf(intent) }, request });
          return refusal;
        }
        // Recorded before the core is told: the end may arrive in the same turn of the event loop (W12a).
        const hold = running(publish);
        events.emit({ kind: "started", publish });
        let answer: ReturnType<typeof open>;
        try {
          answer = open(hold);
        } catch (err) {
          log.error({ err, clientId }, "media core refused an allowed publish");
          await deps.end({ kind: "publish_ended", clientId, reason: "internal_error", held: false, ...NO_MEDIA });
          return denied("internal_error");
        }
        events.emit({ kind: "opened", publish, offer });
        return { outcome: "started", answer };
      },
      async drop() {
        use();
        publishes.answered(clientId);
        await endUnopened(publish, "internal_error", null);
      },
    };
    // Its name and its place must not stay reserved for a caller that has forgotten it.
    setImmediate(() => {
      if (isUsed) return;
      log.error({ clientId }, "an allowed publish was neither started nor dropped");
      void allowed.drop();
    });
    return allowed;
  };
}
