// Measurements of running publishes: a history point for each every five seconds, and current numbers on request.
// Nothing here is written to the store.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import type { Media, PublishSnapshot } from "../../media.ts";
import type { Publishing } from "../lifecycle.ts";
import type { RunningPublish } from "../publishes.ts";
import { type History, NumberHistory, STEP_MS } from "./number-history.ts";
import { type Numbers, numbersOf, type Reading, readingOf, SHORTEST_MS, UNKNOWN } from "./numbers.ts";

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

/** A reading and its result. */
type Look = Reading & { readonly snapshot: PublishSnapshot; readonly numbers: Numbers };

/** What is kept of a running publish. */
interface Memory {
  readonly history: NumberHistory;
  /** That of the last history point. */
  point: Look | null;
  /** The last one, for a point or on request. */
  look: Look | null;
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

  /** Points lie on multiples of the step; a plain interval would drift off them. A timer may fire early: the next one is
   *  not the one that it was set for. */
  function untilNext(): number {
    const left = STEP_MS - (clock.now() % STEP_MS);
    return left < STEP_MS / 2 ? left + STEP_MS : left;
  }

  function addTo(publishes: readonly RunningPublish[]): void {
    const now = clock.now();
    for (const publish of publishes) {
      const { clientId } = publish;
      const snapshot = media().snapshot(clientId);
      if (snapshot === null) continue;
      deps.seen?.(publish, snapshot);
      const memory = memoryOf(clientId);
      if (memory.point !== null && isSame(memory.point, now)) continue;
      const numbers = numbersOf(snapshot, now, memory.point);
      memory.history.add(now, numbers);
      memory.point = { ...readingOf(snapshot, now), snapshot, numbers };
      memory.look = memory.point;
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
    if (memory.look !== null && isSame(memory.look, now)) return { publish, ...memory.look };
    const snapshot = media().snapshot(clientId);
    if (snapshot === null) return { publish, snapshot, numbers: UNKNOWN };
    const numbers = numbersOf(snapshot, now, memory.look);
    memory.look = { ...readingOf(snapshot, now), snapshot, numbers };
    return { publish, snapshot, numbers };
  }

  /** Readings so close together count as one. */
  function isSame({ at }: Reading, now: number): boolean {
    return Math.abs(now - at) < SHORTEST_MS;
  }

  function memoryOf(clientId: number): Memory {
    const known = memories.get(clientId);
    if (known !== undefined) return known;
    const memory: Memory = { history: new NumberHistory(), point: null, look: null };
    memories.set(clientId, memory);
    return memory;
  }
}
