// A transaction whose statements are all known in advance: it reads nothing in between, so it takes one round trip, and on
// the embedded store it blocks nobody and shares its commit with other pending writes.
import type { CompiledQuery, Kysely, QueryResult } from "kysely";

/** What one statement of several did. */
export interface Done {
  /** Number of rows it changed. */
  readonly changes: number;
  /** Those it returned. */
  readonly rows: readonly unknown[];
}

/** Implemented by a store, or a connection to it, that can run a whole transaction in one request. */
export interface Together {
  together(queries: readonly CompiledQuery[]): Promise<readonly Done[]>;
}

/** Runs `queries` in order, all or none, and resolves with the number of rows each of them changed. Rejects as a
 *  transaction does. */
export async function together<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly number[]> {
  return (await doneBy(db, queries)).map(({ changes }) => changes);
}

/** Like `together`; also resolves with the rows that `read` returns after all of them. */
export async function togetherWith<DB, Row>(
  db: Kysely<DB>,
  queries: readonly CompiledQuery[],
  read: CompiledQuery<Row>,
): Promise<{ readonly changes: readonly number[]; readonly rows: readonly Row[] }> {
  const done = await doneBy(db, [...queries, read]);
  return { changes: done.slice(0, -1).map(({ changes }) => changes), rows: done.at(-1)?.rows as readonly Row[] };
}

async function doneBy<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
  if (offersTogether(db)) return await db.together(queries);
  return await db.transaction().execute((trx) => oneByOne(trx, queries));
}

async function oneByOne<DB>(db: Kysely<DB>, queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
  const done: Done[] = [];
  for (const query of queries) done.push(doneOf(await db.executeQuery(query)));
  return done;
}

export function doneOf({ rows, numAffectedRows }: QueryResult<unknown>): Done {
  return { rows, changes: Number(numAffectedRows ?? 0) };
}

export function offersTogether(db: object): db is Together {
  return "together" in db;
}
