// Whether this node has room for one more publish: a pure function of what was measured, its limits and the time. It
// measures nothing (figures.ts), and refuses nobody itself.
import type { ConnectionCount, WorkerStatus } from "../media/workers.ts";

/** What a node can run out of. */
export const SHORTAGES = [
  "cpu",
  "late",
  "drops",
  "gateway",
  "memory",
  "heap",
  "descriptors",
  "connections",
  "setups",
] as const;
export type ShortageCause = (typeof SHORTAGES)[number];

export interface Shortage {
  readonly cause: ShortageCause;
  /** For the operator: what is short, and how short. */
  readonly words: string;
}

/** How much there is of something, and how much is used. */
export interface Usage {
  readonly used: number;
  readonly limit: number;
}

/** What one look at the node found; null is what the system does not say. */
export interface Figures {
  readonly workers: readonly WorkerStatus[];
  /** Datagrams that the kernel dropped on the media ports so far. */
  readonly kernelDrops: number | null;
  /** How late the gateway's event loop ran on average since the last look, ms. */
  readonly loopLateMs: number;
  /** Bytes of the whole process, or of its control group. */
  readonly memory: Usage | null;
  /** Bytes of JavaScript's heap. */
  readonly heap: Usage;
  /** File descriptors. */
  readonly descriptors: Usage | null;
  /** Of the RTMP ports. */
  readonly connections: ConnectionCount;
  /** Publishes that run. */
  readonly publishes: number;
}

/** Percent; 0 switches the look off. */
export interface RoomLimits {
  /** Of the time, which a media worker may be at work. With it goes all that is about being late. */
  readonly loadPercent: number;
  readonly memoryPercent: number;
  readonly descriptorsPercent: number;
}

/** There is room again only when so much less is used, percent: what is refused on the edge does not come and go. */
const EASED_PERCENT = 5;
/** A worker that serves what comes this late on average delays every stream of it by a frame. There is room again below the
 *  second, ms. */
const LATE_MS = { full: 30, room: 10 };
/** The gateway answers this late on average: refusals are no longer fast, and webhooks look slow. The same, ms. */
const LOOP_LATE_MS = { full: 150, room: 50 };
/** Datagrams that the kernel may drop in a second: more than what a hiccup costs. Any later one keeps it full. */
const DROPS_PER_SECOND = { full: 100, room: 1 };
/** JavaScript ends the process when its heap is full, percent. */
const HEAP_PERCENT = 90;
/** The rest is kept so that who is refused can be told why, percent of the RTMP connections. */
const CONNECTIONS_PERCENT = 92;

/** A worker may be busy or late for so long before it counts: compilers and backups make hiccups, ms. */
const PATIENCE_MS = 1_500;
/** A node that is full stays so at least this long, ms. */
const FULL_AT_LEAST_MS = 2_000;
/** From its start on a publish is reserved for until the workers have measured it: two of their spans and a look, ms. */
const MEASURED_AFTER_MS = 3_000;
/** Before it starts it is reserved for so long: one that waits longer for its webhook keeps nobody else out, ms. */
const SETUP_MS = 1_000;
/** What a publish is expected to take of a worker where fewer than `KNOWN_FROM` run, and between which bounds the average of
 *  those that run is believed. 720p at 2 Mbit/s takes 0.1 % of a core by RTMP and 0.15 % by WebRTC: after a failure of the
 *  network hundreds come within a second or two, and a node that can carry them lets them in. */
const SETUP_SHARE = { usual: 0.001, least: 0.0003, most: 0.05 };
const KNOWN_FROM = 20;
/** What a publish is expected to take of memory until it is measured: its buffers and a GOP, bytes. */
const SETUP_BYTES = 1 << 20;
/** And of descriptors: its own connection, the webhook's, and two upstreams. */
const SETUP_DESCRIPTORS = 4;

/** A publish that was let in and is not measured yet. */
export interface Place {
  /** It runs: from `now` on it will be measured. */
  started(now: number): void;
  /** It never ran, or has ended. */
  release(): void;
}

interface Reserved {
  /** When it has been measured, or has taken too long to start, ms. */
  until: number;
}

/** All times are of the same clock, ms. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #places = new Set<Reserved>();
  #figures: Figures | null = null;
  #lookedAt = 0;
  #dropsPerSecond = 0;
  #full: (Shortage & { readonly since: number }) | null = null;
  /** Since when a worker or the loop has been over its limit. */
  #overSince: number | null = null;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** Why the node is full, as the last look found it; null while there is room. */
  get shortage(): Shortage | null {
    return this.#full;
  }

  /** Takes what was measured at `now`. */
  look(figures: Figures, now: number): void {
    const before = this.#figures;
    const span = now - this.#lookedAt;
    if (span > 0) {
      const dropped = (figures.kernelDrops ?? 0) - (before?.kernelDrops ?? figures.kernelDrops ?? 0);
      this.#dropsPerSecond = (Math.max(0, dropped) * 1_000) / span;
    }
    [this.#figures, this.#lookedAt] = [figures, now];
    for (const place of this.#places) if (place.until <= now) this.#places.delete(place);
    this.#full = this.#shortAt(figures, now);
  }

  /** A place for one more publish, or why there is none. */
  take(now: number): Place | Shortage {
    const short = this.#full ?? this.#shortWithOneMore(now);
    if (short !== null) return short;
    const place: Reserved = { until: now + SETUP_MS };
    this.#places.add(place);
    return {
      started: (at) => {
        place.until = at + MEASURED_AFTER_MS;
        this.#places.add(place);
      },
      release: () => void this.#places.delete(place),
    };
  }

  #shortAt(figures: Figures, now: number): (Shortage & { readonly since: number }) | null {
    const was = this.#full;
    const isFull = was !== null;
    const lasting = this.#late(figures, isFull);
    this.#overSince = lasting === null ? null : (this.#overSince ?? now);
    const hasLasted = isFull || now - (this.#overSince ?? now) >= PATIENCE_MS;
    const found = this.#used(figures, 0, isFull) ?? this.#dropping(isFull) ?? (hasLasted ? lasting : null);
    if (found !== null) return { ...found, since: was?.since ?? now };
    return was !== null && now - was.since < FULL_AT_LEAST_MS ? was : null;
  }

  /** What a crowd that starts at once would run out of, before any of it is measured. */
  #shortWithOneMore(now: number): Shortage | null {
    const figures = this.#figures;
    if (figures === null) return null;
    const reserved = [...this.#places].filter(({ until }) => until > now).length;
    if (reserved === 0) return null; // one alone is what the last look allows
    const used = this.#used(figures, reserved + 1, false);
    const { loadPercent } = this.#limits;
    const busy = busyOf(figures.workers) + (reserved * setupShare(figures)) / Math.max(1, figures.workers.length);
    const isCrowd = loadPercent > 0 && busy * 100 >= loadPercent;
    if (used === null && !isCrowd) return null;
    return { cause: "setups", words: `${reserved} publishes are being set up` };
  }

  /** What is filled, not how fast; `more`: publishes to come. */
  #used({ memory, heap, descriptors, connections }: Figures, more: number, isFull: boolean): Shortage | null {
    const eased = isFull ? EASED_PERCENT : 0;
    const isOver = (usage: Usage | null, percent: number, each: number) =>
      percent > 0 && usage !== null && (usage.used + more * each) * 100 >= (percent - eased) * usage.limit;
    const { memoryPercent, descriptorsPercent } = this.#limits;
    if (isOver(descriptors, descriptorsPercent, SETUP_DESCRIPTORS)) {
      return { cause: "descriptors", words: `${of(descriptors)} file descriptors are open` };
    }
    const ports = connections.limit === undefined ? null : { used: connections.held, limit: connections.limit };
    if (isOver(ports, descriptorsPercent === 0 ? 0 : CONNECTIONS_PERCENT, more === 0 ? 0 : 1)) {
      return { cause: "connections", words: `${of(ports)} RTMP connections are open` };
    }
    if (isOver(memory, memoryPercent, SETUP_BYTES)) {
      return { cause: "memory", words: `${megabytes(memory)} of memory are used` };
    }
    if (isOver(heap, memoryPercent === 0 ? 0 : HEAP_PERCENT, 0)) {
      return { cause: "heap", words: `${megabytes(heap)} of JavaScript's heap are used` };
    }
    return null;
  }

  #dropping(isFull: boolean): Shortage | null {
    const most = isFull && this.#full?.cause === "drops" ? DROPS_PER_SECOND.room : DROPS_PER_SECOND.full;
    if (this.#limits.loadPercent === 0 || this.#dropsPerSecond < most) return null;
    return { cause: "drops", words: `the kernel drops ${Math.ceil(this.#dropsPerSecond)} datagrams a second` };
  }

  /** What is too slow now, if anything. */
  #late({ workers, loopLateMs }: Figures, isFull: boolean): Shortage | null {
    const { loadPercent } = this.#limits;
    if (loadPercent === 0) return null;
    const busy = busyOf(workers) * 100;
    if (busy >= loadPercent - (isFull ? 2 * EASED_PERCENT : 0)) {
      return { cause: "cpu", words: `a media worker is busy for ${Math.round(busy)} % of the time` };
    }
    const lateMs = Math.max(0, ...workers.map((worker) => worker.lateMs));
    if (lateMs >= (isFull ? LATE_MS.room : LATE_MS.full)) {
      return { cause: "late", words: `a media worker is ${Math.round(lateMs)} ms late` };
    }
    if (loopLateMs >= (isFull ? LOOP_LATE_MS.room : LOOP_LATE_MS.full)) {
      return { cause: "gateway", words: `the gateway is ${Math.round(loopLateMs)} ms late` };
    }
    return null;
  }
}

/** Of the busiest, 0 to 1: a publish may come to any. */
const busyOf = (workers: readonly WorkerStatus[]) => Math.max(0, ...workers.map(({ busy }) => busy));

/** What one more publish is expected to take of a worker. */
function setupShare({ workers, publishes }: Figures): number {
  if (publishes < KNOWN_FROM) return SETUP_SHARE.usual;
  const average = workers.reduce((sum, { busy }) => sum + busy, 0) / publishes;
  return Math.min(SETUP_SHARE.most, Math.max(SETUP_SHARE.least, average));
}

const of = (usage: Usage | null) => `${usage?.used} of ${usage?.limit}`;
const megabytes = (usage: Usage | null) =>
  `${Math.round((usage?.used ?? 0) / 1e6)} of ${Math.round((usage?.limit ?? 0) / 1e6)} MB`;
