// Whether this node has room for one more publish: a pure function of measurements, limits and the time. It measures
// nothing (figures.ts), and sends no refusals.
import type { ConnectionCount, WorkerStatus } from "../media/workers.ts";

/** The resources a node can run out of. */
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
  /** For the operator: which resource is short, and by how much. */
  readonly words: string;
}

/** The limit of a resource, and how much of it is used. */
export interface Usage {
  readonly used: number;
  readonly limit: number;
}

/** One set of measurements; null for what the system does not report. */
export interface Figures {
  readonly workers: readonly WorkerStatus[];
  /** Datagrams dropped by the kernel on the media ports so far. */
  readonly kernelDrops: number | null;
  /** Average delay of the gateway's event loop since the last measurement, ms. */
  readonly loopLateMs: number;
  /** Bytes of the whole process, or of its control group. */
  readonly memory: Usage | null;
  /** Bytes of JavaScript's heap. */
  readonly heap: Usage;
  /** File descriptors. */
  readonly descriptors: Usage | null;
  /** Connections to the RTMP ports. */
  readonly connections: ConnectionCount;
  /** Number of running publishes. */
  readonly publishes: number;
}

/** Percent; 0 disables the check. */
export interface RoomLimits {
  /** Share of the time that a media worker may be at work. 0 also disables the checks of delays. */
  readonly loadPercent: number;
  readonly memoryPercent: number;
  readonly descriptorsPercent: number;
}

/** Usage must fall this far below the limit before there is room again, percent, so that the state does not flap. */
const EASED_PERCENT = 5;
/** An average delay of a media worker at which all of its streams are a frame late. There is room again below the
 *  second value, ms. */
const LATE_MS = { full: 30, room: 10 };
/** The same for the gateway's event loop, ms: at this delay refusals are slow, and webhooks appear to be. */
const LOOP_LATE_MS = { full: 150, room: 50 };
/** Datagrams that the kernel may drop in a second: more than a brief stall causes. While any are dropped the node stays
 *  full. */
const DROPS_PER_SECOND = { full: 100, room: 1 };
/** JavaScript aborts the process when its heap is full, percent. */
const HEAP_PERCENT = 90;
/** The remaining connections are kept for sending refusals, percent of the RTMP connections. */
const CONNECTIONS_PERCENT = 92;

/** How long a worker may be busy or late before it counts: compilers and backups cause brief stalls, ms. */
const PATIENCE_MS = 1_500;
/** A full node stays full at least this long, ms. */
const FULL_AT_LEAST_MS = 2_000;
/** How long a place stays reserved after the publish has started, until the workers have measured it: two of their
 *  intervals and one measurement, ms. */
const MEASURED_AFTER_MS = 3_000;
/** How long a place stays reserved before the start: a publish that waits longer for its webhook blocks no other,
 *  ms. */
const SETUP_MS = 1_000;
/** The expected load of a publish on a worker while fewer than `KNOWN_FROM` run, and the bounds for the average of the
 *  running ones. 720p at 2 Mbit/s takes 0.1 % of a core by RTMP and 0.15 % by WebRTC: after a network failure hundreds
 *  reconnect within a second or two, and a node that can carry them must admit them. */
const SETUP_SHARE = { usual: 0.001, least: 0.0003, most: 0.05 };
const KNOWN_FROM = 20;
/** The expected memory of a publish until it is measured: its buffers and a GOP, bytes. */
const SETUP_BYTES = 1 << 20;
/** The expected descriptors: its own connection, the webhook's, and two upstreams. */
const SETUP_DESCRIPTORS = 4;

/** Capacity reserved for an admitted publish that is not measured yet. */
export interface Place {
  /** The publish runs, and will be measured from `now` on. */
  started(now: number): void;
  /** The publish never ran, or has ended. */
  release(): void;
}

interface Reserved {
  /** When the publish has been measured, or has taken too long to start, ms. */
  until: number;
}

/** All times are on the same clock, ms. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #places = new Set<Reserved>();
  #figures: Figures | null = null;
  #takenAt = 0;
  #dropsPerSecond = 0;
  #full: (Shortage & { readonly since: number }) | null = null;
  /** Since when a worker or the event loop has been over its limit. */
  #overSince: number | null = null;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** Why the node is full, according to the last measurement; null while there is room. */
  get shortage(): Shortage | null {
    return this.#full;
  }

  /** Takes the measurements of `now`. */
  update(figures: Figures, now: number): void {
    const before = this.#figures;
    const span = now - this.#takenAt;
    if (span > 0) {
      const dropped = (figures.kernelDrops ?? 0) - (before?.kernelDrops ?? figures.kernelDrops ?? 0);
      this.#dropsPerSecond = (Math.max(0, dropped) * 1_000) / span;
    }
    [this.#figures, this.#takenAt] = [figures, now];
    for (const place of this.#places) if (place.until <= now) this.#places.delete(place);
    this.#full = this.#shortAt(figures, now);
  }

  /** Reserves a place for one more publish, or says why there is none. */
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

  /** The resource that a crowd starting at once would exhaust, before any of it is measured. */
  #shortWithOneMore(now: number): Shortage | null {
    const figures = this.#figures;
    if (figures === null) return null;
    const reserved = [...this.#places].filter(({ until }) => until > now).length;
    if (reserved === 0) return null; // a single publish is covered by the last measurement
    const used = this.#used(figures, reserved + 1, false);
    const { loadPercent } = this.#limits;
    const busy = busyOf(figures.workers) + (reserved * setupShare(figures)) / Math.max(1, figures.workers.length);
    const isCrowd = loadPercent > 0 && busy * 100 >= loadPercent;
    if (used === null && !isCrowd) return null;
    return { cause: "setups", words: `${reserved} publishes are being set up` };
  }

  /** Checks resources that fill up, not delays; `more`: further publishes to expect. */
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

  /** Checks what is too slow. */
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

/** Of the busiest worker, 0 to 1, since a publish may be assigned to any. */
const busyOf = (workers: readonly WorkerStatus[]) => Math.max(0, ...workers.map(({ busy }) => busy));

/** The expected load of one more publish on a worker. */
function setupShare({ workers, publishes }: Figures): number {
  if (publishes < KNOWN_FROM) return SETUP_SHARE.usual;
  const average = workers.reduce((sum, { busy }) => sum + busy, 0) / publishes;
  return Math.min(SETUP_SHARE.most, Math.max(SETUP_SHARE.least, average));
}

const of = (usage: Usage | null) => `${usage?.used} of ${usage?.limit}`;
const megabytes = (usage: Usage | null) =>
  `${Math.round((usage?.used ?? 0) / 1e6)} of ${Math.round((usage?.limit ?? 0) / 1e6)} MB`;
