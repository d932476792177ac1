// Previews: running publishes as FLV for the pages of their organisation, up to a limit. The bytes come from the media
// core and are passed on unparsed.
import type { Logger } from "pino";
import { TooManyPreviews } from "../../errors.ts";
import type { PreviewMedia } from "../../media/preview.ts";
import type { Publishing } from "../lifecycle.ts";
import type { RunningPublish } from "../publishes.ts";

/** Concurrent previews of all organisations: each costs the gateway's single thread some ten writes a second. When all
 *  are in use, the organisation with the most loses one to an organisation that has fewer. */
export const PREVIEWS_LIMIT = 20;
/** How often a viewer's permission is checked again, ms. */
const CHECK_MS = 5_000;
/** How long a viewer may take no data, ms: as long as the media core allows, which can report that end only to a viewer
 *  that takes some. Counted in checks, so a preview may end up to `CHECK_MS` later. */
const STALLED_MS = 30_000;
/** The first check may follow at once, so one more than fit into `STALLED_MS`. */
const STALLED_CHECKS = STALLED_MS / CHECK_MS + 1;

export interface Previews {
  /** The running publish of a stream as FLV; null when none runs. It ends with the publish, when it is cancelled, when
   *  it is not read for 30 s, and when `mayGoOn` resolves to false. Throws `TooManyPreviews`. */
  open(wanted: {
    readonly organisationId: string;
    readonly streamId: string;
    /** Never rejects. */
    readonly mayGoOn: () => Promise<boolean>;
  }): ReadableStream<Uint8Array> | null;
  /** How many previews run. */
  running(): number;
  /** Ends all of them: a response still being sent would delay the stop of the service. */
  stop(): void;
}

export function createPreviews(deps: {
  readonly publishing: Pick<Publishing, "ofStream">;
  readonly media: () => PreviewMedia;
  readonly log: Pick<Logger, "debug">;
}): Previews {
  const { publishing, media, log } = deps;
  /** Running previews, oldest first: the function that ends each, called with the reason, and its organisation. */
  const running = new Map<(reason: string) => void, string>();

  return {
    open({ organisationId, streamId, mayGoOn }) {
      const publish = publishing.ofStream(organisationId, streamId);
      if (publish === undefined) return null;
      if (running.size >= PREVIEWS_LIMIT) makeRoom(organisationId);
      return bodyOf(publish, mayGoOn);
    },
    running: () => running.size,
    stop() {
      for (const end of [...running.keys()]) end("shutdown");
    },
  };

  /** Ends the newest preview of the organisation that has the most. Throws `TooManyPreviews` when `asking` would then
   *  have as many. */
  function makeRoom(asking: string): void {
    const counts = new Map<string, number>();
    for (const organisationId of running.values()) {
      counts.set(organisationId, (counts.get(organisationId) ?? 0) + 1);
    }
    const [most = "", count = 0] = [...counts].sort(([, a], [, b]) => b - a)[0] ?? [];
    if (count <= (counts.get(asking) ?? 0) + 1) throw new TooManyPreviews();
    const newest = [...running].findLast(([, organisationId]) => organisationId === most);
    newest?.[0]("gave_way");
  }

  function bodyOf(
    { clientId, intent }: RunningPublish,
    mayGoOn: () => Promise<boolean>,
  ): ReadableStream<Uint8Array> | null {
    let wake = (): void => {};
    const source = media().openPreview(clientId, () => wake());
    if (source === null) return null;
    let body: ReadableStreamDefaultController<Uint8Array> | null = null;
    /** Whether the viewer waits for data, and the checks since it last did. */
    let isReading = false;
    let checksUnread = 0;
    const checking = setInterval(async () => {
      if (!isReading) checksUnread += 1;
      if (checksUnread >= STALLED_CHECKS) return end("stalled");
      if (!(await mayGoOn())) end("access_ended");
    }, CHECK_MS);

    function end(reason: string): void {
      if (!running.delete(end)) return;
      clearInterval(checking);
      source?.close();
      body?.close();
      wake();
      log.debug({ clientId, reason }, "preview ended");
    }
    running.set(end, intent.organisationId);
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      body = controller;
    };
    /** Called when the reader takes more: until then data waits in a bounded queue of the media core. */
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      isReading = true;
      checksUnread = 0;
      while (running.has(end)) {
        const { data, ended } = source.read();
        if (data !== undefined) {
          isReading = false;
          return controller.enqueue(data);
        }
        if (ended !== undefined) return end(ended);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    const cancel = (): void => {
      body = null; // it is closed already
      end("viewer_left");
    };
    return new ReadableStream({ start, pull, cancel }, { highWaterMark: 0 });
  }
}
