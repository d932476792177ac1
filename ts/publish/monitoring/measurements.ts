// Measurements of running publishes: a history point for each every five seconds, and current numbers on request.
// Nothing here is written to the store.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import type { Media, PublishSnapshot } from "../../media.ts";
import type { Publishing } from "../lifecycle.ts";
import type { RunningPublish } from "../publishes.ts";
import { type History, NumberHistory, STEP_MS } from "./number-history.ts";
import { type Numbers, numbersOf, type Reading, readingOf, UNKNOWN } from "./numbers.ts";

/** Readings closer together than this count as one: rates over a shorter time mean nothing, ms. */
const SHORTEST_MS = 500;

/** Publishes measured in one turn of the event loop. */
const AT_A_TIME = 50;

/** One publish at one moment; `snapshot` is null when the media core does not know it yet, or no longer. */
export interface Measured {
  readonly publish: RunningPublish;
  readonly snapshot: PublishSnapshot | null;
  readonly numbers: Numbers;
}

export interface Measurements {
  /** Every running publish of an organisation, measured at the call. */
  ofOrganisation(organisationId: string): readonly Measured[];
  /** The newest running publish of a stream; null when none runs. */
  ofStream(organisationId: string, streamId: string): Measured | null;
  /** All null when no such publish runs. */
  numbersOf(clientId: number): Numbers;
  /** Empty when no such publish runs. */
  historyOf(clientId: number): History;
  /** Adds a point to the history of each running publish; called by a timer every `STEP_MS`. */
  addPoints(): void;
  stop(): void;
}

/** What is kept of a running publish. */
interface Memory {
  readonly history: NumberHistory;
  /** The reading of the last history point. */
  point: Reading | null;
  /** The last reading made on request, and its result. */
  look: (Reading & Pick<Measured, "snapshot" | "numbers">) | null;
}

export function createMeasurements(deps: {
  readonly publishing: Pick<Publishing, "running" | "find" | "ofStream">;
  readonly media: () => Pick<Media, "snapshot">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "error">;
  /** Called with each reading that becomes a point. */
  readonly seen?: (publish: RunningPublish, snapshot: PublishSnapshot) => void;
}): Measurements {
  const { publishing, media, clock, log } = deps;
  const memories = new Map<number, Memory>();
  let timer = setTimeout(() => void tick(), untilNext()).unref();

  return {
    ofOrganisation: (organisationId) =>
      publishing
        .running()
        .filter(({ intent }) => intent.organisationId === organisationId)
        .map(measure),
    ofStream(organisationId, streamId) {
      const publish = publishing.ofStream(organisationId, streamId);
      return publish === undefined ? null : measure(publish);
    },
    numbersOf(clientId) {
      const publish = publishing.find(clientId);
      return publish === undefined ? UNKNOWN : measure(publish).numbers;
    },
    historyOf: (clientId) => (memories.get(clientId)?.history ?? new NumberHistory()).read(),
    addPoints() {
      addTo(publishing.running());
      forgetEnded();
    },
    stop: () => clearTimeout(timer),
  };

  /** In batches, so that a publish request does not wait for all of them. */
  async function tick(): Promise<void> {
    timer = setTimeout(() => void tick(), untilNext()).unref();
    try {
      const running = publishing.running();
      for (let at = 0; at < running.length; at += AT_A_TIME) {
        addTo(running.slice(at, at + AT_A_TIME));
        await nextTurn();
      }
      forgetEnded();
    } catch (err) {
      log.error({ err }, "running publishes could not be measured");
    }
  }

  /** Points lie on multiples of the step; a plain interval would drift off them. */
  function untilNext(): number {
    return STEP_MS - (clock.now() % STEP_MS);
  }

  function addTo(publishes: readonly RunningPublish[]): void {
    const now = clock.now();
    for (const publish of publishes) {
      const { clientId } = publish;
      const snapshot = media().snapshot(clientId);
      if (snapshot === null) continue;
      deps.seen?.(publish, snapshot);
      const memory = memoryOf(clientId);
      memory.history.add(now, numbersOf(snapshot, now, memory.point));
      memory.point = readingOf(snapshot, now);
    }
  }

  function forgetEnded(): void {
    const known = new Set(publishing.running().map(({ clientId }) => clientId));
    for (const clientId of memories.keys()) if (!known.has(clientId)) memories.delete(clientId);
  }

  function measure(publish: RunningPublish): Measured {
    const { clientId } = publish;
    const now = clock.now();
    const memory = memoryOf(clientId);
    const { look, point } = memory;
    if (look !== null && Math.abs(now - look.at) < SHORTEST_MS) return { publish, ...look };
    const snapshot = media().snapshot(clientId);
    if (snapshot === null) return { publish, snapshot, numbers: UNKNOWN };
    // A reading of an hour ago would yield the average of that hour.
    const earlier = look !== null && look.at >= (point?.at ?? 0) ? look : point;
    const numbers = numbersOf(snapshot, now, earlier);
    memory.look = { ...readingOf(snapshot, now), snapshot, numbers };
    return { publish, snapshot, numbers };
  }

  function memoryOf(clientId: number): Memory {
    const known = memories.get(clientId);
    if (known !== undefined) return known;
    const memory: Memory = { history: new NumberHistory(), point: null, look: null };
    memories.set(clientId, memory);
    return memory;
  }
}
