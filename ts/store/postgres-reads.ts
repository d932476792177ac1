// The connections for reads of the API: fewer than those for everything else and apart from them, with a short limit for
// a statement, so that no read makes admission, ends or heartbeats wait.
import { Kysely } from "kysely";
import { endPool, openPool, postgresDialect } from "./postgres.ts";
import { chargeStatement } from "./statements/reading.ts";

/** Connections of a process. */
const READ_CONNECTIONS = 6;
/** Limit for one statement, enforced by the server, and how long a response is awaited, ms. */
const READ_LIMIT_MS = 2_000;
const READ_ANSWER_LIMIT_MS = 5_000;

/** Every statement follows an index, whatever the statistics say today. */
const PLANS = "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

/** Opens no connection yet; the first statement does. */
export function openReads<DB>(databaseUrl: string): { readonly db: Kysely<DB>; close(): Promise<void> } {
  const pool = openPool(databaseUrl, {
    most: READ_CONNECTIONS,
    statement_timeout: READ_LIMIT_MS,
    query_timeout: READ_ANSWER_LIMIT_MS,
    options: PLANS,
  });
  const db = new Kysely<DB>({ dialect: postgresDialect(pool), log: chargeStatement });
  return {
    db,
    async close() {
      await db.destroy();
      await endPool(pool);
    },
  };
}
