// A transaction whose statements are all known before it begins: it asks nothing in between, so on the embedded store it
// keeps nobody waiting and shares its commit with whatever else is to be written at that moment.
import type { CompiledQuery, Kysely } from "kysely";

/** What a store offers that can take a transaction whole. */
export interface Together {
  together(queries: readonly CompiledQuery[]): Promise<readonly number[]>;
}

/** Runs `queries` in their order, all or none, and resolves with how many rows each of them changed. None may return
 *  rows. Rejects as a transaction does. */
export async function together<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly number[]> {
  if (offersTogether(db)) return await db.together(queries);
  return await db.transaction().execute(async (trx) => {
    const changes: number[] = [];
    for (const query of queries) changes.push(Number((await trx.executeQuery(query)).numAffectedRows ?? 0));
    return changes;
  });
}

function offersTogether(db: object): db is Together {
  return "together" in db;
}
