// Measurements of running publishes: a history point for each every five seconds, and current numbers on request.
// What is wrong with each is decided with every reading. Nothing here is written to the store.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import type { Media, PublishSnapshot, WhipDiagnostics } from "../../media.ts";
import { limitOf } from "../bitrate-limit.ts";
import type { Publishing } from "../lifecycle.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { RunningPublish } from "../publishes.ts";
import { type Finding, PublishHealth } from "./health.ts";
import { FINDING_CODES, type FindingCode } from "./health-words.ts";
import { type History, NumberHistory, STEP_MS } from "./number-history.ts";
import { type Numbers, numbersOf, type Reading, readingOf, SHORTEST_MS, UNKNOWN } from "./numbers.ts";

/** Publishes measured in one turn of the event loop. */
const AT_A_TIME = 50;

/** One publish at one moment; `snapshot` is null when the media core does not know it yet, or no longer. */
export interface Measured {
  readonly publish: RunningPublish;
  readonly snapshot: PublishSnapshot | null;
  readonly numbers: Numbers;
  readonly findings: readonly Finding[];
}

/** What a point is made of. */
export interface PointReading {
  readonly snapshot: PublishSnapshot;
  /** null for RTMP, or when there are none yet. */
  readonly diagnostics: WhipDiagnostics | null;
  readonly findings: readonly Finding[];
}

export interface Measurements {
  /** Every running publish of an organisation, measured at the call. */
  ofOrganisation(organisationId: string): readonly Measured[];
  /** The newest running publish of a stream; null when none runs. */
  ofStream(organisationId: string, streamId: string): Measured | null;
  /** All null when no such publish runs. */
  numbersOf(clientId: number): Numbers;
  /** What is wrong with a publish, the worst first, at its last reading; empty when no such publish runs. */
  findingsOf(clientId: number): readonly Finding[];
  /** How many running publishes have a finding of each code. */
  troubles(): Readonly<Record<FindingCode, number>>;
  /** Empty when no such publish runs. */
  historyOf(clientId: number): History;
  /** Adds a point to the history of each running publish; called by a timer every `STEP_MS`. */
  addPoints(): void;
  stop(): void;
}

/** A reading and its result. */
type Taken = Reading & { readonly snapshot: PublishSnapshot; readonly numbers: Numbers };

/** What is kept of a running publish. */
interface Memory {
  readonly history: NumberHistory;
  readonly health: PublishHealth;
  /** That of the last history point. */
  point: Taken | null;
  /** The last one, for a point or on request. */
  latest: Taken | null;
}

export function createMeasurements(deps: {
  readonly publishing: Pick<Publishing, "running" | "find" | "ofStream">;
  readonly media: () => Pick<Media, "snapshot" | "whipDiagnostics">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "error">;
  /** Receives a sample with each point. */
  readonly events: Pick<PublishEvents, "emit">;
}): Measurements {
  const { publishing, media, clock, log, events } = deps;
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
    findingsOf: (clientId) => memories.get(clientId)?.health.findings ?? [],
    troubles() {
      const counts = Object.fromEntries(FINDING_CODES.map((code) => [code, 0])) as Record<FindingCode, number>;
      for (const { health } of memories.values())
        for (const code of new Set(health.findings.map((finding) => finding.code))) counts[code] += 1;
      return counts;
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
      const { clientId, protocol } = publish;
      const snapshot = media().snapshot(clientId);
      if (snapshot === null) continue;
      const memory = memoryOf(publish);
      if (memory.point !== null && isSame(memory.point, now)) continue;
      const diagnostics = protocol === "whip" ? media().whipDiagnostics(clientId) : null;
      const numbers = numbersOf(snapshot, now, memory.point);
      memory.history.add(now, numbers);
      const findings = memory.health.point({ at: now, snapshot, numbers }, diagnostics);
      events.emit({ kind: "sample", publish, reading: { snapshot, diagnostics, findings } });
      memory.point = { ...readingOf(snapshot, now), snapshot, numbers };
      memory.latest = memory.point;
    }
  }

  function forgetEnded(): void {
    const known = new Set(publishing.running().map(({ clientId }) => clientId));
    for (const clientId of memories.keys()) if (!known.has(clientId)) memories.delete(clientId);
  }

  function measure(publish: RunningPublish): Measured {
    const { clientId } = publish;
    const now = clock.now();
    const memory = memoryOf(publish);
    const { health, latest } = memory;
    if (latest !== null && isSame(latest, now)) return { publish, ...latest, findings: health.findings };
    const snapshot = media().snapshot(clientId);
    if (snapshot === null) return { publish, snapshot, numbers: UNKNOWN, findings: [] };
    const numbers = numbersOf(snapshot, now, memory.latest);
    memory.latest = { ...readingOf(snapshot, now), snapshot, numbers };
    return { publish, snapshot, numbers, findings: health.assess({ at: now, snapshot, numbers }) };
  }

  /** Readings so close together count as one. */
  function isSame({ at }: Reading, now: number): boolean {
    return Math.abs(now - at) < SHORTEST_MS;
  }

  function memoryOf(publish: RunningPublish): Memory {
    const known = memories.get(publish.clientId);
    if (known !== undefined) return known;
    const { protocol, acceptedAt, addedUpstreams, upstreamLabels } = publish;
    const labelOf = (id: string) => addedUpstreams.get(id)?.label ?? upstreamLabels.get(id) ?? null;
    const health = new PublishHealth({ protocol, acceptedAt, labelOf, limitKbps: () => limitOf(publish) });
    const memory: Memory = { history: new NumberHistory(), health, point: null, latest: null };
    memories.set(publish.clientId, memory);
    return memory;
  }
}
