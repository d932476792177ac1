// Measures twice a second whether this node has room, less often while nothing happens, and reports the result: to the
// log once for each change, to the metrics, and to every caller that asks for a place. What counts as full is decided in
// room.ts.
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { untilTick } from "../in-time.ts";
import type { WorkerMedia } from "../media/workers.ts";
import { openFigures } from "./figures.ts";
import { type Figures, Room, SHORTAGES, type Shortage } from "./room.ts";
import type { CapacityConfig } from "./settings.ts";
import { Slots } from "./slots.ts";

/** Between two measurements, ms: while there is anything to do, and otherwise. */
const MEASURE_EVERY_MS = 500;
const IDLE_MEASURE_EVERY_MS = 2_000;
/** Retry-After of consecutive refusals, seconds: varied so that a crowd does not come back all at once. */
const WAITS_S = [2, 3, 4, 5, 6] as const;
/** A crowd is over when it has caused no refusal for this long, ms. */
const CROWD_OVER_MS = 5_000;
/** Set-ups that may wait for their turn: a few seconds' worth. */
const WAITING_LIMIT = 500;
/** Set-ups that are worked on at the same time: each takes several milliseconds of the event loop in total. */
const SETUPS_AT_ONCE = 4;

/** The functions of the media core that are measured. */
type MeasuredMedia = WorkerMedia & { kernelDrops(): number | null };

/** Capacity reserved for an admitted publish that is not measured yet. */
export interface Place {
  /** Resolves when the publish may be set up, or its set-up go on: a crowd is not set up all at once. `isAllowed`: the
   *  customer has allowed it, so it comes before those that have not been asked about. */
  turn(isAllowed?: boolean): Promise<void>;
  /** The set-up waits for something, and another may go on. */
  pause(): void;
  /** The publish runs. */
  started(): void;
  /** The publish never ran, or has ended. */
  release(): void;
}

/** For use where capacity is not measured. */
export const NO_PLACE: Place = { turn: async () => {}, pause() {}, started() {}, release() {} };

/** No publish is admitted at present. */
export interface Refused {
  readonly retryAfterS: number;
}

export interface Capacity {
  /** Call when the media core is available to be measured. */
  start(): void;
  /** Why no new publish is accepted, for the operator; null while there is room. */
  problem(): string | null;
  /** Reserves a place for one publish. */
  take(): Place | Refused;
  /** The refusal for one more publish, without reserving a place; null while there is room. */
  refusal(): Refused | null;
  stop(): void;
}

export interface CapacityDeps {
  readonly config: CapacityConfig;
  /** Called at each measurement. */
  readonly media: () => MeasuredMedia;
  /** Number of running publishes. */
  readonly publishes: () => number;
  readonly log: Pick<Logger, "warn" | "info" | "error">;
  readonly registry: Registry;
}

export function createCapacity(deps: CapacityDeps): Capacity {
  const { log } = deps;
  // A monotonic clock, unlike the system's.
  const now = () => performance.now();
  const room = new Room(deps.config);
  const figures = openFigures(deps.config, deps.registry);
  const refusals = countRefusals(deps.registry, room);
  /** The shortage logged last. */
  let logged: Shortage | null = null;
  /** Publishes refused since then. */
  let refused = 0;
  let crowdedAt = Number.NEGATIVE_INFINITY;
  const slots = new Slots(SETUPS_AT_ONCE);
  let timer: NodeJS.Timeout | undefined;
  let measuredAt = Number.NEGATIVE_INFINITY;
  let isIdle = false;

  function measureRoom(): void {
    measuredAt = now();
    try {
      room.update(measure(), measuredAt);
      logChange();
    } catch (err) {
      log.error({ err }, "this node could not be measured");
    }
  }

  function keepMeasuring(): void {
    measureRoom();
    timer = setTimeout(keepMeasuring, untilTick(isIdle ? IDLE_MEASURE_EVERY_MS : MEASURE_EVERY_MS)).unref();
  }

  /** What was measured while nothing happened may be old. */
  function measureIfOld(): void {
    if (timer !== undefined && now() - measuredAt > MEASURE_EVERY_MS) measureRoom();
  }

  function measure(): Figures {
    const media = deps.media();
    const measured = {
      ...figures.read(),
      workers: media.workerStatus(),
      kernelDrops: media.kernelDrops(),
      connections: media.connections(),
      publishes: deps.publishes(),
    };
    isIdle = !figures.isBusy() && measured.connections.held === 0 && measured.publishes === 0;
    return measured;
  }

  /** Logs once for each change, however many are refused meanwhile. A crowd does not make the node full, but is logged
   *  too. */
  function logChange(): void {
    const isCrowded = now() - crowdedAt < CROWD_OVER_MS;
    const short = room.shortage ?? (isCrowded && logged?.cause === "setups" ? logged : null);
    if (short?.cause !== logged?.cause && short !== null) {
      log.warn({ cause: short.cause, problem: short.words }, "full: no new publish is accepted");
    }
    if (short === null && logged !== null) {
      log.info({ refused }, "there is room for new publishes again");
      refused = 0;
    }
    logged = short;
  }

  function refuse(shortage: Shortage): Refused {
    refusals.inc({ cause: shortage.cause });
    refused += 1;
    if (shortage.cause === "setups") {
      crowdedAt = now();
      if (logged === null) {
        logged = shortage;
        log.warn(
          { cause: shortage.cause, problem: shortage.words },
          "many publishes start at once: not all of them are admitted yet",
        );
      }
    }
    return { retryAfterS: WAITS_S[refused % WAITS_S.length] ?? WAITS_S[0] };
  }

  return {
    start() {
      timer ??= setTimeout(keepMeasuring, MEASURE_EVERY_MS).unref();
    },
    problem: () => (room.shortage === null ? null : `full: ${room.shortage.words}`),
    take() {
      measureIfOld();
      const { waiting } = slots;
      if (waiting >= WAITING_LIMIT) return refuse({ cause: "setups", words: `${waiting} publishes wait to be set up` });
      const place = room.take(now());
      if ("cause" in place) return refuse(place);
      let leave = () => {};
      return {
        async turn(isAllowed) {
          leave = await slots.enter(isAllowed);
        },
        pause: () => leave(),
        started() {
          leave();
          place.started(now());
        },
        release() {
          leave();
          place.release();
        },
      };
    },
    refusal() {
      measureIfOld();
      return room.shortage === null ? null : refuse(room.shortage);
    },
    stop() {
      clearTimeout(timer);
      figures.stop();
    },
  };
}

/** What the metrics show of the room; returns the counter of refusals. */
function countRefusals(registry: Registry, room: Room): Counter<"cause"> {
  const refusals = new Counter({
    name: "headgate_full_refusals_total",
    help: "Publishes and players refused because this node was full, by the resource that was short",
    labelNames: ["cause"],
    registers: [registry],
  });
  new Gauge({
    name: "headgate_full",
    help: "1 while this node refuses new publishes because this resource is short, else 0",
    labelNames: ["cause"],
    registers: [registry],
    collect() {
      for (const cause of SHORTAGES) this.set({ cause }, cause === room.shortage?.cause ? 1 : 0);
    },
  });
  return refusals;
}
