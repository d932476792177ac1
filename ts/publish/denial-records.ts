// Records of denials, written behind the answer and some at a time: no broadcaster waits for them, and a customer that
// denies or hangs a hundred times costs the store one write. If one is lost the answer counts as unknown: recovery
// rather sends one publish_done too many than too few.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Schema } from "../store/schema.ts";
import { type Denial, recordDenied } from "./record.ts";

/** How long a denial waits for others, ms. */
const GATHERING_MS = 100;
/** Denials in one statement. */
const AT_A_TIME = 100;

export interface DenialRecords {
  /** Returns at once. `recorded`: whether the intent is in the store, which must not reject. */
  add(denial: Denial, recorded: Promise<boolean>): void;
  /** Writes what waits; resolves when nothing is left to be written of the denials so far. */
  settled(): Promise<void>;
}

export function createDenialRecords(deps: {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}): DenialRecords {
  const { db, clock, log } = deps;
  const underWay = new Set<Promise<void>>();
  let gathered: Denial[] = [];
  let timer: NodeJS.Timeout | undefined;

  return {
    add(denial, recorded) {
      track(recorded.then((isThere) => (isThere ? gather(denial) : undefined)));
    },
    async settled() {
      while (underWay.size > 0 || gathered.length > 0) {
        write();
        await Promise.all(underWay);
      }
    },
  };

  function gather(denial: Denial): void {
    gathered.push(denial);
    if (gathered.length >= AT_A_TIME) write();
    else timer ??= setTimeout(write, GATHERING_MS);
  }

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    if (gathered.length === 0) return;
    const denials = gathered;
    gathered = [];
    track(recordDenied(db, denials, clock.now()));
  }

  function track(work: Promise<void>): void {
    const settled: Promise<void> = work
      .catch((err: unknown) => log.error({ err }, "denials could not be recorded"))
      .finally(() => underWay.delete(settled));
    underWay.add(settled);
  }
}
