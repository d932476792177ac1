// Continuously tests whether the store can be written: a full disk or an unreachable server is noticed before somebody
// publishes, and so is its recovery. Operations that fail meanwhile report that themselves; live streams need no store.
import { statfs } from "node:fs/promises";
import type { Logger } from "pino";
import { inTime, untilTick } from "../in-time.ts";
import { reasonOf } from "../reason.ts";
import type { Store } from "./open.ts";

/** About the time between the end of one test and the next, ms: while the store can be written, and while it cannot. */
const TRY_EVERY_MS = 2_000;
const TRY_AGAIN_MS = 500;
/** A test that takes longer has failed, ms. */
const TRIAL_LIMIT_MS = 8_000;
/** Below this a disk counts as full: the write-ahead log of a busy moment would no longer fit, bytes. */
export const FREE_AT_LEAST_BYTES = 4 * 1024 * 1024;
/** The row of `sequence` that tests write. */
const TRIAL_ROW = "store_trial";

export interface StoreHealth {
  /** Why the store cannot be written, for the operator; null while it can. */
  problem(): string | null;
  stop(): void;
}

/** Watches until `stop`. `folder`: the data directory whose free space is checked, null when the store is elsewhere. */
export function watchStore(deps: {
  readonly db: Store["db"];
  readonly folder: string | null;
  readonly log: Logger;
}): StoreHealth {
  const { db, folder, log } = deps;
  let problem: string | null = null;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  async function watch(): Promise<void> {
    const found = await inTime(TRIAL_LIMIT_MS, trial(), `no answer within ${TRIAL_LIMIT_MS} ms`).catch(reasonOf);
    if (stopped) return;
    if (found !== null && problem === null) log.error({ problem: found }, "the store cannot be written");
    if (found === null && problem !== null) log.info("the store can be written again");
    problem = found;
    timer = setTimeout(() => void watch(), untilTick(problem === null ? TRY_EVERY_MS : TRY_AGAIN_MS)).unref();
  }

  /** Writes one row. Returns a text when the disk is full; rejects when the write fails. */
  async function trial(): Promise<string | null> {
    if (folder !== null) {
      const { bavail, bsize } = await statfs(folder);
      if (bavail * bsize < FREE_AT_LEAST_BYTES) {
        return `the disk of ${folder} is full: ${Math.floor((bavail * bsize) / 1024)} KiB are left`;
      }
    }
    await db
      .insertInto("sequence")
      .values({ name: TRIAL_ROW, next: 1 })
      .onConflict((conflict) => conflict.column("name").doUpdateSet((eb) => ({ next: eb("sequence.next", "+", 1) })))
      .execute();
    return null;
  }

  void watch();
  return {
    problem: () => problem,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
