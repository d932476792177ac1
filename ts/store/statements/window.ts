// Filtered lists look at a bounded number of rows along an index, and continue behind the last of them.
import type { SelectQueryBuilder } from "kysely";

/** The last of the first `most` rows of `positions`, an ordered query; undefined when it has fewer, so that nothing is left. */
export async function lastInWindow<DB, TB extends keyof DB, O>(positions: SelectQueryBuilder<DB, TB, O>, most: number) {
  return await positions
    .limit(1)
    .offset(most - 1)
    .executeTakeFirst();
}
