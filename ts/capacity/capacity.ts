// What a node looks at to know whether it has room, twice a second, and who is told: the log once for each change, metrics,
// and whoever asks for a place. What is too much is decided in room.ts.
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { WorkerMedia } from "../media/workers.ts";
import { openFigures } from "./figures.ts";
import { type Figures, Room, SHORTAGES, type Shortage } from "./room.ts";
import type { CapacityConfig } from "./settings.ts";
import { Turnstile } from "./turnstile.ts";

/** Between two looks, ms. */
const LOOK_EVERY_MS = 500;
/** What those are told to wait that are refused one after the other, seconds: not all of a crowd comes back at once. */
const WAITS_S = [2, 3, 4, 5, 6] as const;
/** A crowd is over when nobody was refused because of it for so long, ms. */
const CROWD_OVER_MS = 5_000;
/** Set-ups that may wait for their turn: a few seconds' worth. */
const WAITING_LIMIT = 500;
/** Begun in one turn of the event loop: a set-up takes several milliseconds of it in all. */
const SETUPS_IN_A_TURN = 1;

/** What may be asked of the media core. */
type MeasuredMedia = WorkerMedia & { kernelDrops(): number | null };

/** A publish that was let in and is not measured yet. */
export interface Place {
  /** Resolves when it is its turn to be set up: not all of a crowd at once. */
  readonly turn: Promise<void>;
  /** It runs. */
  started(): void;
  /** It never ran, or has ended. */
  release(): void;
}

/** Where nobody measures. */
export const NO_PLACE: Place = { turn: Promise.resolve(), started() {}, release() {} };

/** Nobody is let in now. */
export interface Refused {
  readonly retryAfterS: number;
}

export interface Capacity {
  /** The media core is there to be measured. */
  start(): void;
  /** Why no new publish is taken, for the operator; null while there is room. */
  problem(): string | null;
  /** A place for one publish. */
  take(): Place | Refused;
  /** Refuses whoever would be too much, without a place being taken; null while there is room. */
  refusal(): Refused | null;
  stop(): void;
}

export interface CapacityDeps {
  readonly config: CapacityConfig;
  /** Asked at each look. */
  readonly media: () => MeasuredMedia;
  /** Publishes that run. */
  readonly publishes: () => number;
  readonly log: Pick<Logger, "warn" | "info" | "error">;
  readonly registry: Registry;
}

export function createCapacity(deps: CapacityDeps): Capacity {
  const { log } = deps;
  // Never set back, as no other clock is.
  const now = () => performance.now();
  const room = new Room(deps.config);
  const figures = openFigures(deps.config);
  const refusals = new Counter({
    name: "headgate_full_refusals_total",
    help: "Publishes and players refused because this node had no room, by what was short",
    labelNames: ["cause"],
    registers: [deps.registry],
  });
  new Gauge({
    name: "headgate_full",
    help: "1 while this node takes no new publish because this is short, else 0",
    labelNames: ["cause"],
    registers: [deps.registry],
    collect() {
      for (const cause of SHORTAGES) this.set({ cause }, cause === room.shortage?.cause ? 1 : 0);
    },
  });
  /** What the log was told last. */
  let told: Shortage | null = null;
  /** Refused since then. */
  let refused = 0;
  let crowdedAt = Number.NEGATIVE_INFINITY;
  const turnstile = new Turnstile(SETUPS_IN_A_TURN);
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    try {
      room.look(measure(), now());
      tell();
    } catch (err) {
      log.error({ err }, "this node could not be measured");
    }
  }

  function measure(): Figures {
    const media = deps.media();
    return {
      ...figures.read(),
      workers: media.workerStatus(),
      kernelDrops: media.kernelDrops(),
      connections: media.connections(),
      publishes: deps.publishes(),
    };
  }

  /** Once for each change, however many are refused meanwhile. A crowd makes no node full; it is told all the same. */
  function tell(): void {
    const isCrowded = now() - crowdedAt < CROWD_OVER_MS;
    const short = room.shortage ?? (isCrowded && told?.cause === "setups" ? told : null);
    if (short?.cause !== told?.cause && short !== null) {
      log.warn({ cause: short.cause, problem: short.words }, "full: no new publish is taken");
    }
    if (short === null && told !== null) {
      log.info({ refused }, "there is room for new publishes again");
      refused = 0;
    }
    told = short;
  }

  function refuse(shortage: Shortage): Refused {
    refusals.inc({ cause: shortage.cause });
    refused += 1;
    if (shortage.cause === "setups") {
      crowdedAt = now();
      if (told === null) {
        told = shortage;
        log.warn(
          { cause: shortage.cause, problem: shortage.words },
          "a crowd comes at once: not all of it is let in yet",
        );
      }
    }
    return { retryAfterS: WAITS_S[refused % WAITS_S.length] ?? WAITS_S[0] };
  }

  return {
    start() {
      timer ??= setInterval(look, LOOK_EVERY_MS).unref();
    },
    problem: () => (room.shortage === null ? null : `full: ${room.shortage.words}`),
    take() {
      const { waiting } = turnstile;
      if (waiting >= WAITING_LIMIT) return refuse({ cause: "setups", words: `${waiting} publishes wait to be set up` });
      const place = room.take(now());
      if ("cause" in place) return refuse(place);
      const turn = new Promise<void>((begin) => turnstile.pass(begin));
      return { turn, started: () => place.started(now()), release: place.release };
    },
    refusal: () => (room.shortage === null ? null : refuse(room.shortage)),
    stop() {
      clearInterval(timer);
      figures.stop();
    },
  };
}
