// Records what happens to running publishes: from events of the media core, and by reading its counters, often while a
// publish starts and with each point of its history afterwards. It decides nothing, and no publish waits for it: its
// data is written in the background.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { inTime } from "../../in-time.ts";
import type { OnAirChanged } from "../../media/events.ts";
import type { Protocol } from "../../media/protocols.ts";
import type { Media, PublishSnapshot } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import type { Publishing } from "../lifecycle.ts";
import type { PublishEvent, PublishEvents } from "../publish-events.ts";
import type { RunningPublish } from "../publishes.ts";
import { type MediaSummary, summaryOf } from "../whip/sdp-summary.ts";
import { type KeptTimeline, keepTimelines } from "./kept-timelines.ts";
import { type EndFigures, type Look, WatchedPublish } from "./watched-publish.ts";

/** Interval between two readings of starting publishes, ms, and how many of them are read each time. */
const START_STEP_MS = 200;
const START_LOOKS_LIMIT = 50;
/** A publish counts as starting for at most this long, as does its admission, ms. */
const START_LIMIT_MS = 20_000;
/** How often changes of running publishes are written, and ended ones retried that the store could not take, ms. */
const KEEP_EVERY_MS = 30_000;
/** How long an end waits for others to share its write, ms. */
const BATCH_MS = 100;
/** Ended timelines that wait while the store fails; further ones are lost. */
const WAITING_LIMIT = 5_000;
/** How long `stop` waits for the store, ms. */
const STOP_LIMIT_MS = 5_000;
/** Codecs listed in a moment. */
const CODECS_LIMIT = 8;

export interface TimelineRecorder {
  /** The counters of a publish that runs here, as of now; null for any other. */
  countersOf(clientId: number): Pick<PublishSnapshot, "bytesIn" | "bytesOut"> | null;
  /** Figures for the log line at the end of a publish; empty when nothing was observed. */
  figuresOf(clientId: number): EndFigures | Record<string, never>;
  /** The timeline of a publish that runs here, or whose end is not written yet; null for others. */
  timelineOf(clientId: number): KeptTimeline | null;
  /** Writes everything pending. */
  flush(): Promise<void>;
  /** Writes everything pending, within 5 s, and stops reading counters. */
  stop(): Promise<void>;
}

interface Memory {
  readonly requestedAt: number;
  readonly acceptedAt: number;
  readonly protocol: Protocol;
  readonly watched: WatchedPublish;
}

type Started = Pick<RunningPublish, "clientId" | "protocol" | "acceptedAt" | "intent">;

export function createTimelineRecorder(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "snapshot" | "whipDiagnostics" | "isWhipConnected">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "warn">;
  readonly events: Pick<PublishEvents, "listen">;
  /** Called at each use: publishing starts after this object. */
  readonly publishing: () => Pick<Publishing, "running" | "find">;
}): TimelineRecorder {
  const { db, media, clock, log, publishing } = deps;
  const memories = new Map<number, Memory>();
  /** Ended timelines not written yet. */
  const waiting = new Map<number, KeptTimeline & { readonly figures: EndFigures }>();
  /** Until then publishes may be starting, on the given clock. */
  let startsUntil = 0;
  let startTimer: NodeJS.Timeout | null = null;
  let batchTimer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  let stopped = false;
  const keeping = setInterval(() => void flush(true), KEEP_EVERY_MS).unref();

  deps.events.listen((event) => {
    switch (event.kind) {
      case "requested":
        return expectStart();
      case "opened":
        return noteOpened(event);
      case "on_air_changed":
        return noteOnAir(event);
      case "upstream_changed": {
        const { clientId, upstreamId, sending, upstream, detail } = event;
        return memoryOf(clientId)?.watched.upstream(clock.now(), upstreamId, sending, upstream, detail);
      }
      case "sample":
        return take(event.publish.clientId, remember(event.publish), event.reading);
      case "ended":
        return end(event.counters.clientId, event.publish);
    }
  });

  return {
    countersOf: (clientId) => media().snapshot(clientId),
    figuresOf: (clientId) => waiting.get(clientId)?.figures ?? {},
    timelineOf(clientId) {
      const memory = memoryOf(clientId);
      return memory === null ? (waiting.get(clientId) ?? null) : keptOf(clientId, memory);
    },
    flush: () => flush(true),
    async stop() {
      stopped = true;
      if (startTimer !== null) clearTimeout(startTimer);
      clearInterval(keeping);
      await inTime(STOP_LIMIT_MS, flush(true), undefined);
    },
  };

  function remember({ clientId, protocol, acceptedAt, intent }: Started): Memory {
    const known = memories.get(clientId);
    if (known !== undefined) return known;
    const watched = new WatchedPublish({ protocol, acceptedAt });
    const memory = { requestedAt: intent.requestedAt, acceptedAt, protocol, watched };
    memories.set(clientId, memory);
    return memory;
  }

  function memoryOf(clientId: number): Memory | null {
    const publish = publishing().find(clientId);
    return memories.get(clientId) ?? (publish === undefined ? null : remember(publish));
  }

  function expectStart(): void {
    startsUntil = clock.now() + START_LIMIT_MS;
    if (!stopped) startTimer ??= setTimeout(lookAtStarts, START_STEP_MS).unref();
  }

  function lookAtStarts(): void {
    startTimer = null;
    const now = clock.now();
    const starting = publishing()
      .running()
      .filter((of) => now - of.acceptedAt < START_LIMIT_MS && remember(of).watched.isStarting);
    // When there are many, only the newest, which change most; the others are read with their history.
    for (const { clientId } of starting.slice(-START_LOOKS_LIMIT)) {
      const memory = memories.get(clientId);
      if (memory !== undefined) look(clientId, memory, media().snapshot(clientId));
    }
    if (!stopped && (now < startsUntil || starting.length > 0))
      startTimer = setTimeout(lookAtStarts, START_STEP_MS).unref();
  }

  function look(clientId: number, memory: Memory, snapshot: PublishSnapshot | null): void {
    const diagnostics = memory.protocol === "whip" ? media().whipDiagnostics(clientId) : null;
    take(clientId, memory, { snapshot, diagnostics, findings: null });
  }

  function take(clientId: number, { protocol, watched }: Memory, reading: Omit<Look, "isConnected">): void {
    const isConnected = protocol === "whip" && media().isWhipConnected(clientId);
    watched.look(clock.now(), { ...reading, isConnected });
  }

  /** `publish`: null for one that is known only if it was read before. */
  function end(clientId: number, publish: RunningPublish | null): void {
    const memory = memories.get(clientId) ?? (publish === null ? null : remember(publish));
    if (memory === null) return;
    const last = media().snapshot(clientId);
    if (last !== null) look(clientId, memory, last);
    memories.delete(clientId);
    if (waiting.size >= WAITING_LIMIT) return;
    waiting.set(clientId, { ...keptOf(clientId, memory), figures: memory.watched.figures() });
    batchTimer ??= setTimeout(() => void flush(false), BATCH_MS).unref();
  }

  function keptOf(clientId: number, { requestedAt, watched }: Memory): KeptTimeline {
    return { clientId, requestedAt, moments: watched.moments(clock.now()) };
  }

  /** `all`: includes changes of running publishes. Never rejects: what could not be written waits for the next call. */
  function flush(all: boolean): Promise<void> {
    if (batchTimer !== null) clearTimeout(batchTimer);
    batchTimer = null;
    writing = writing
      .then(() => write(all))
      .catch((err: unknown) => log.warn({ err }, "timelines could not be written"));
    return writing;
  }

  async function write(all: boolean): Promise<void> {
    if (all) endForgotten();
    const ended = [...waiting.values()];
    const changed = all ? [...memories].filter(([, { watched }]) => watched.isChanged) : [];
    for (const [, { watched }] of changed) watched.isChanged = false;
    try {
      await keepTimelines(db, [
        ...ended.map(({ figures: _, ...timeline }) => timeline),
        ...changed.map(([clientId, memory]) => keptOf(clientId, memory)),
      ]);
    } catch (error) {
      for (const [, { watched }] of changed) watched.isChanged = true;
      throw error;
    }
    for (const { clientId } of ended) waiting.delete(clientId);
  }

  /** Ends timelines of publishes whose end did not come from the media core. */
  function endForgotten(): void {
    const known = new Set(
      publishing()
        .running()
        .map(({ clientId }) => clientId),
    );
    for (const clientId of memories.keys()) if (!known.has(clientId)) end(clientId, null);
  }

  function noteOnAir({ clientId, onAir, other: client_id, cause }: OnAirChanged): void {
    if (onAir && cause === "began") return;
    memoryOf(clientId)?.watched.note(clock.now(), onAir ? "took_over" : "stands_by", { client_id, cause });
  }

  function noteOpened({ publish, offered, answer }: Extract<PublishEvent, { kind: "opened" }>): void {
    if (publish.protocol !== "whip") return;
    const { watched } = remember(publish);
    if (offered !== null && answer !== null) noteOffer(watched, offered, answer);
  }

  function noteOffer(watched: WatchedPublish, offer: string, answer: string): void {
    const [offered, answered] = [summaryOf(offer), summaryOf(answer)];
    watched.note(clock.now(), "offer_answered", {
      offered_video: codecsOf(offered.media, "video"),
      offered_audio: codecsOf(offered.media, "audio"),
      video: codecsOf(answered.media, "video"),
      audio: codecsOf(answered.media, "audio"),
      candidates: Object.entries(offered.candidates)
        .map(([kind, count]) => `${count} ${kind}`)
        .join(", "),
    });
  }
}

/** Names of the codecs that carry media, without clock rates; repair and redundancy formats are left out. */
function codecsOf(media: readonly MediaSummary[], kind: MediaSummary["kind"]): string {
  const sections = media.filter((section) => section.kind === kind && !section.isOff);
  const names = sections.flatMap(({ codecs }) => codecs.map((codec) => codec.split("/")[0] ?? ""));
  const carrying = names.filter((name) => !/^(rtx|red|ulpfec|flexfec.*|telephone-event|CN)$/i.test(name));
  return [...new Set(carrying)].slice(0, CODECS_LIMIT).join(", ");
}
