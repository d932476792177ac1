// Deletes many rows while others use the store: few per statement, with pauses in between, so that nobody waits for
// more than one of them and most wait for none.
import { type Kysely, PostgresAdapter, type SelectQueryBuilder } from "kysely";

/** Rows of one statement. */
export const PORTION = 25;
/** Pause between two statements, ms; at least as long as the last one took: a slow store has other requests to
 *  serve. */
const PAUSE_MS = 20;
const PAUSE_TIMES = 10;
const PAUSE_LIMIT_MS = 2_000;

/** The rows of a statement that deletes a portion, without those that another node is deleting at this moment: it would
 *  wait for that node and repeat its work. */
export function untaken<DB, TB extends keyof DB, O>(
  db: Kysely<DB>,
  rows: SelectQueryBuilder<DB, TB, O>,
): SelectQueryBuilder<DB, TB, O> {
  return db.getExecutor().adapter instanceof PostgresAdapter ? rows.forUpdate().skipLocked() : rows;
}

/** Runs `portion`, which resolves with the number of rows it changed, until that is less than `PORTION` or `isStopped`;
 *  resolves with the total. */
export async function inPortions(portion: () => Promise<number>, isStopped: () => boolean): Promise<number> {
  let changed = 0;
  for (let taken = PORTION; taken === PORTION && !isStopped(); changed += taken) {
    const startedAt = performance.now();
    taken = await portion();
    const pauseMs = Math.min(Math.max(PAUSE_MS, (performance.now() - startedAt) * PAUSE_TIMES), PAUSE_LIMIT_MS);
    if (taken > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return changed;
}
