// Captures of publishes, for bug reports: which are running or waiting for their publish, and where their files are.
// The media core writes the files (docs/capture.md).
import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { CaptureRefused } from "../../errors.ts";
import type { CaptureMedia, CaptureOptions, CaptureSource } from "../../media/captures.ts";
import type { DenialCause, Denied } from "../denials.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { CaptureConfig } from "./settings.ts";

/** Concurrent captures, including those that wait for their publish: each uses a thread and part of the disk. */
const RUNNING_LIMIT = 4;
/** Captures kept in the list. */
const KEPT_LIMIT = 100;
const MB = 1_000_000;

export interface Capture {
  readonly id: string;
  /** null while it waits for its publish. */
  readonly clientId: number | null;
  readonly streamId: string;
  readonly media: boolean;
  /** Path of the file on this node. */
  readonly path: string;
  readonly state: "waiting" | "running" | "ended";
  /** Why it ended, as docs/capture.md lists it. */
  readonly reason: string | null;
  readonly bytes: number;
  readonly frames: number;
  /** Publish requests of the stream that were denied while the capture waited; null when there were none. */
  readonly denied: Denials | null;
}

/** Denied publish requests that keep a capture waiting. */
export interface Denials {
  readonly times: number;
  /** Cause of the last denial. */
  readonly cause: DenialCause;
  /** null when the last request was denied before it had one. */
  readonly clientId: number | null;
}

export interface CaptureRequest {
  readonly streamId: string;
  /** null: the next publish of the stream. */
  readonly clientId: number | null;
  /** null: as long as a capture may last. */
  readonly seconds: number | null;
  readonly media: boolean;
}

/** A capture that has not begun. */
export type PlannedCapture = Pick<Capture, "id" | "clientId" | "streamId" | "media">;

export interface Captures {
  /** Starts a capture, or lets it wait for its publish. Rejects with `CaptureRefused`; null when the publish does not
   *  run here. `record` is awaited once the capture may begin and before it does; if it rejects, so does this, and
   *  nothing is captured. */
  begin(request: CaptureRequest, record: (planned: PlannedCapture) => Promise<void>): Promise<Capture | null>;
  find(id: string): Capture | null;
  /** Stops the capture; null when the id is unknown. */
  stop(id: string): Capture | null;
}

interface Kept extends CaptureRequest {
  readonly id: string;
  clientId: number | null;
  readonly options: CaptureOptions;
  source: CaptureSource | null;
  /** Set for a capture that ended before its publish came. */
  reason: string | null;
  denied: Denials | null;
}

export function createCaptures(deps: {
  readonly config: CaptureConfig;
  readonly media: () => CaptureMedia;
  readonly version: string;
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "info" | "warn">;
  /** Makes an id by which other nodes find the owner of a capture; with a single node the id is used as it is. */
  readonly captureId?: (id: string) => string;
  readonly events: Pick<PublishEvents, "listen">;
}): Captures {
  const { config, media, version, clock, log, captureId = (id) => id } = deps;
  const kept = new Map<string, Kept>();
  /** Streams whose next publish is to be captured. */
  const waiting = new Map<string, Kept>();
  deps.events.listen((event) => {
    if (event.kind === "started") start(event.publish.clientId, event.publish.intent.streamId);
    if (event.kind === "denied") noteDenied(event.refusal);
  });

  return {
    async begin(request, record) {
      checkRoomFor(request);
      const one = newCapture(request);
      await record(one);
      checkRoomFor(request); // others may have begun meanwhile
      if (request.clientId === null) {
        waiting.set(request.streamId, one);
      } else {
        one.source = inCore(() => media().capture(request.clientId ?? 0, one.options));
        if (one.source === null) return null;
        log.info({ capture: one.id, clientId: request.clientId, path: one.options.path }, "capture started");
      }
      keep(one);
      return shown(one);
    },
    find(id) {
      const one = kept.get(id);
      return one === undefined ? null : shown(one);
    },
    stop(id) {
      const one = kept.get(id);
      if (one === undefined) return null;
      if (waiting.get(one.streamId) === one) {
        waiting.delete(one.streamId);
        one.reason = "stopped";
      }
      one.source?.stop();
      return shown(one);
    },
  };

  /** A publish of the stream is allowed and is about to start. */
  function start(clientId: number, streamId: string): void {
    const one = waiting.get(streamId);
    if (one === undefined) return;
    waiting.delete(streamId);
    one.clientId = clientId;
    one.source = media().captureNext(clientId, one.options);
    log.info({ capture: one.id, clientId, path: one.options.path }, "capture started");
  }

  /** A publish request of the stream was denied: there is nothing to capture; a waiting capture records the cause. */
  function noteDenied({ cause, about = {} }: Denied): void {
    const one = waiting.get(about.stream ?? "");
    if (one === undefined) return;
    one.denied = { cause, clientId: about.clientId ?? null, times: (one.denied?.times ?? 0) + 1 };
  }

  /** Throws `CaptureRefused` when as many captures run as may, or one already waits for the same publish. */
  function checkRoomFor({ clientId, streamId }: CaptureRequest): void {
    const running = [...kept.values()].filter((one) => shown(one).state !== "ended");
    if (running.length >= RUNNING_LIMIT) throw new CaptureRefused(`${RUNNING_LIMIT} captures are already running`);
    if (clientId === null && waiting.has(streamId))
      throw new CaptureRefused("A capture is already waiting for the stream's next publish");
  }

  function newCapture(request: CaptureRequest): Kept {
    const { directory, maxS, maxMb } = config;
    if (directory === null) {
      throw new CaptureRefused("Captures are off: set capture.directory (HEADGATE_CAPTURE_DIRECTORY) and restart");
    }
    inCore(() => mkdirSync(directory, { recursive: true, mode: 0o700 }));
    const id = captureId(randomUUID());
    const began = new Date(clock.now()).toISOString();
    const options = {
      path: join(directory, `${began.replaceAll(/[:.]/g, "-")}-${id}.capture`),
      header: JSON.stringify({ version, began, media: request.media }),
      media: request.media,
      bytesLimit: maxMb * MB,
      timeLimitMs: Math.min(request.seconds ?? maxS, maxS) * 1_000,
    };
    return { ...request, id, options, source: null, reason: null, denied: null };
  }

  /** Drops the oldest capture that has ended from the list; its file stays. */
  function keep(one: Kept): void {
    kept.set(one.id, one);
    if (kept.size <= KEPT_LIMIT) return;
    const oldest = [...kept.values()].find((each) => shown(each).state === "ended");
    if (oldest !== undefined) kept.delete(oldest.id);
  }

  /** A disk error is for the operator to resolve, not a bug. */
  function inCore<T>(act: () => T): T {
    try {
      return act();
    } catch (cause) {
      log.warn({ err: cause }, "a capture could not begin");
      throw new CaptureRefused("The capture file cannot be created in capture.directory: see the log", { cause });
    }
  }
}

function shown({ id, clientId, streamId, media, options, source, reason, denied }: Kept): Capture {
  const { bytes, frames, ended } = source?.status() ?? { bytes: 0, frames: 0 };
  const why = ended ?? reason;
  const state = why !== null && why !== undefined ? "ended" : source === null ? "waiting" : "running";
  return { id, clientId, streamId, media, path: options.path, state, reason: why ?? null, bytes, frames, denied };
}
