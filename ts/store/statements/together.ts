// A transaction whose statements are all known in advance: it reads nothing in between, so on the embedded store it
// blocks nobody and shares its commit with other pending writes.
import type { CompiledQuery, Kysely } from "kysely";

/** Implemented by a store that can run a whole transaction in one request. */
export interface Together {
  together(queries: readonly CompiledQuery[]): Promise<readonly number[]>;
}

/** Runs `queries` in order, all or none, and resolves with the number of rows each of them changed. None may return
 *  rows. Rejects as a transaction does. */
export async function together<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly number[]> {
  if (offersTogether(db)) return await db.together(queries);
  return await db.transaction().execute((trx) => oneByOne(trx, queries));
}

export async function oneByOne<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly number[]> {
  const changes: number[] = [];
  for (const query of queries) changes.push(Number((await db.executeQuery(query)).numAffectedRows ?? 0));
  return changes;
}

function offersTogether(db: object): db is Together {
  return "together" in db;
}
