// Records what happens to running publishes: from events of the media core, and by reading its counters, often while a
// publish starts and with each point of its history afterwards. It decides nothing, and no publish waits for it: its
// data is written in the background.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { inTime } from "../../in-time.ts";
import { type RepeatedWarning, repeatedWarning } from "../../limits/repeated-warning.ts";
import type { OnAirChanged } from "../../media/events.ts";
import type { Protocol } from "../../media/protocols.ts";
import type { Media, MediaSummary, OfferSummary, PublishSnapshot } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import type { Publishing } from "../lifecycle.ts";
import type { PublishEvent, PublishEvents } from "../publish-events.ts";
import type { RunningPublish } from "../publishes.ts";
import { type KeptTimeline, keepTimelines } from "./kept-timelines.ts";
import { type EndFigures, type Observation, WatchedPublish } from "./watched-publish.ts";

/** Interval between two readings of starting publishes, ms, and how many of them are read each time. */
const START_STEP_MS = 200;
const START_READS_LIMIT = 50;
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

interface Memory {
  readonly requestedAt: number;
  readonly acceptedAt: number;
  readonly protocol: Protocol;
  readonly watched: WatchedPublish;
}

type Started = Pick<RunningPublish, "clientId" | "protocol" | "acceptedAt" | "intent">;

export interface TimelineRecorderDeps {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "snapshot" | "whipDiagnostics" | "isWhipConnected">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "warn">;
  readonly events: Pick<PublishEvents, "listen">;
  /** Called at each use: publishing starts after this object. */
  readonly publishing: () => Pick<Publishing, "running" | "find">;
}

export class TimelineRecorder {
  readonly #deps: TimelineRecorderDeps;
  readonly #warning: RepeatedWarning;
  readonly #memories = new Map<number, Memory>();
  /** Ended timelines not written yet. */
  readonly #waiting = new Map<number, KeptTimeline & { readonly figures: EndFigures }>();
  /** Until then publishes may be starting, on the given clock. */
  #startsUntil = 0;
  #startTimer: NodeJS.Timeout | null = null;
  #batchTimer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #stopped = false;
  readonly #keeping = setInterval(() => void this.flush(), KEEP_EVERY_MS).unref();

  constructor(deps: TimelineRecorderDeps) {
    this.#deps = deps;
    this.#warning = repeatedWarning(deps.log, "timelines could not be written");
    deps.events.listen((event) => this.#handle(event));
  }

  /** The counters of a publish that runs here, as of now; null for any other. */
  countersOf(clientId: number): Pick<PublishSnapshot, "bytesIn" | "bytesOut"> | null {
    return this.#deps.media().snapshot(clientId);
  }

  /** Figures for the log line at the end of a publish; empty when nothing was observed. */
  figuresOf(clientId: number): EndFigures | Record<string, never> {
    return this.#waiting.get(clientId)?.figures ?? {};
  }

  /** The timeline of a publish that runs here, or whose end is not written yet; null for others. */
  timelineOf(clientId: number): KeptTimeline | null {
    const memory = this.#memoryOf(clientId);
    return memory === null ? (this.#waiting.get(clientId) ?? null) : this.#keptOf(clientId, memory);
  }

  /** Writes everything pending. */
  flush(): Promise<void> {
    return this.#flush(true);
  }

  /** Writes everything pending, within 5 s, and stops reading counters. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#startTimer !== null) clearTimeout(this.#startTimer);
    clearInterval(this.#keeping);
    await inTime(STOP_LIMIT_MS, this.flush(), undefined);
  }

  #handle(event: PublishEvent): void {
    switch (event.kind) {
      case "requested":
        this.#expectStart();
        break;
      case "opened":
        this.#noteOpened(event);
        break;
      case "on_air_changed":
        this.#noteOnAir(event);
        break;
      case "upstream_changed": {
        const { clientId, upstreamId, sending, upstream, detail } = event;
        this.#memoryOf(clientId)?.watched.upstream(this.#now(), upstreamId, sending, upstream, detail);
        break;
      }
      case "sample":
        this.#take(event.publish.clientId, this.#remember(event.publish), event.reading);
        break;
      case "ended":
        this.#end(event.counters.clientId, event.publish);
    }
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  #remember({ clientId, protocol, acceptedAt, intent }: Started): Memory {
    const known = this.#memories.get(clientId);
    if (known !== undefined) return known;
    const watched = new WatchedPublish({ protocol, acceptedAt });
    const memory = { requestedAt: intent.requestedAt, acceptedAt, protocol, watched };
    this.#memories.set(clientId, memory);
    return memory;
  }

  #memoryOf(clientId: number): Memory | null {
    const publish = this.#deps.publishing().find(clientId);
    return this.#memories.get(clientId) ?? (publish === undefined ? null : this.#remember(publish));
  }

  #expectStart(): void {
    this.#startsUntil = this.#now() + START_LIMIT_MS;
    if (!this.#stopped) this.#startTimer ??= setTimeout(() => this.#readStarts(), START_STEP_MS).unref();
  }

  #readStarts(): void {
    this.#startTimer = null;
    const now = this.#now();
    const starting = this.#deps
      .publishing()
      .running()
      .filter((of) => now - of.acceptedAt < START_LIMIT_MS && this.#remember(of).watched.isStarting);
    // When there are many, only the newest, which change most; the others are read with their history.
    for (const { clientId } of starting.slice(-START_READS_LIMIT)) {
      const memory = this.#memories.get(clientId);
      if (memory !== undefined) this.#read(clientId, memory, this.#deps.media().snapshot(clientId));
    }
    if (!this.#stopped && (now < this.#startsUntil || starting.length > 0))
      this.#startTimer = setTimeout(() => this.#readStarts(), START_STEP_MS).unref();
  }

  #read(clientId: number, memory: Memory, snapshot: PublishSnapshot | null): void {
    const diagnostics = memory.protocol === "whip" ? this.#deps.media().whipDiagnostics(clientId) : null;
    this.#take(clientId, memory, { snapshot, diagnostics, findings: null });
  }

  #take(clientId: number, { protocol, watched }: Memory, reading: Omit<Observation, "isConnected">): void {
    const isConnected = protocol === "whip" && this.#deps.media().isWhipConnected(clientId);
    watched.observe(this.#now(), { ...reading, isConnected });
  }

  /** `publish`: null for one that is known only if it was read before. */
  #end(clientId: number, publish: RunningPublish | null): void {
    const memory = this.#memories.get(clientId) ?? (publish === null ? null : this.#remember(publish));
    if (memory === null) return;
    const last = this.#deps.media().snapshot(clientId);
    if (last !== null) this.#read(clientId, memory, last);
    this.#memories.delete(clientId);
    if (this.#waiting.size >= WAITING_LIMIT) return;
    this.#waiting.set(clientId, { ...this.#keptOf(clientId, memory), figures: memory.watched.figures() });
    this.#batchTimer ??= setTimeout(() => void this.#flush(false), BATCH_MS).unref();
  }

  #keptOf(clientId: number, { requestedAt, watched }: Memory): KeptTimeline {
    return { clientId, requestedAt, moments: watched.moments(this.#now()) };
  }

  /** `all`: includes changes of running publishes. Never rejects: what could not be written waits for the next call. */
  #flush(all: boolean): Promise<void> {
    if (this.#batchTimer !== null) clearTimeout(this.#batchTimer);
    this.#batchTimer = null;
    this.#writing = this.#writing.then(() => this.#warning.around(() => this.#write(all)));
    return this.#writing;
  }

  async #write(all: boolean): Promise<void> {
    if (all) this.#endForgotten();
    const ended = [...this.#waiting.values()];
    const changed = all ? [...this.#memories].filter(([, { watched }]) => watched.isChanged) : [];
    for (const [, { watched }] of changed) watched.isChanged = false;
    try {
      await keepTimelines(this.#deps.db, [
        ...ended.map(({ figures: _, ...timeline }) => timeline),
        ...changed.map(([clientId, memory]) => this.#keptOf(clientId, memory)),
      ]);
    } catch (error) {
      for (const [, { watched }] of changed) watched.isChanged = true;
      throw error;
    }
    for (const { clientId } of ended) this.#waiting.delete(clientId);
  }

  /** Ends timelines of publishes whose end did not come from the media core. */
  #endForgotten(): void {
    const known = new Set(
      this.#deps
        .publishing()
        .running()
        .map(({ clientId }) => clientId),
    );
    for (const clientId of this.#memories.keys()) if (!known.has(clientId)) this.#end(clientId, null);
  }

  #noteOnAir({ clientId, onAir, other: client_id, cause }: OnAirChanged): void {
    if (onAir && cause === "began") return;
    this.#memoryOf(clientId)?.watched.note(this.#now(), onAir ? "took_over" : "stands_by", { client_id, cause });
  }

  #noteOpened({ publish, offer }: Extract<PublishEvent, { kind: "opened" }>): void {
    if (publish.protocol !== "whip") return;
    const { watched } = this.#remember(publish);
    if (offer !== null) this.#noteOffer(watched, offer);
  }

  #noteOffer(watched: WatchedPublish, { media, candidates, agreed }: OfferSummary): void {
    watched.note(this.#now(), "offer_answered", {
      offered_video: codecsOf(media, "video"),
      offered_audio: codecsOf(media, "audio"),
      video: codecsOf(agreed, "video"),
      audio: codecsOf(agreed, "audio"),
      candidates: candidates.join(", "),
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
