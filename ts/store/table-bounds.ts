// What bounds the rows that one organisation can write, table by table. A test compares this list with the schema: a new
// table needs a bound, or the reason why it needs none.
import { type CompiledQuery, type Kysely, sql } from "kysely";
import { InvalidValue } from "../errors.ts";
import { PORTION, untaken } from "./portions.ts";
import type { Schema } from "./schema.ts";

/** Counted per organisation (tables/table-share-tables.ts). `full`: a further row is refused, or replaces the oldest. */
interface Counted {
  readonly by: "count";
  readonly rows: number;
  readonly bytes: number;
  readonly full: "refused" | "oldest_removed";
  /** What the one who is refused can do. */
  readonly remedy: string;
}

type Bound = Counted | { readonly by: "other"; readonly why: string };

const other = (why: string): Bound => ({ by: "other", why });
const MB = 1_000_000;

export const TABLE_BOUNDS = {
  stream: {
    by: "count",
    rows: 5_000_000,
    bytes: 2_500 * MB,
    full: "refused",
    remedy: "deleted streams count, because their names are not used again; use streams for several broadcasts",
  },
  kept_answer: {
    by: "count",
    rows: 200_000,
    bytes: 64 * MB,
    full: "refused",
    remedy: "send requests without the header, or wait: answers are kept for a day",
  },
  api_key: {
    by: "count",
    rows: 20_000,
    bytes: 20 * MB,
    full: "refused",
    remedy: "revoked keys count, because the audit log names them; use keys for longer",
  },
  audit: {
    by: "count",
    rows: 2_000_000,
    bytes: 500 * MB,
    full: "oldest_removed",
    remedy: "the oldest entries are removed before the retention says so",
  },
  organisation: other("only the operator creates organisations; one row each, its texts limited by the routes"),
  organisation_setting: other(
    "one row each, its size limited by ROW_LIMIT and NETWORKS_LIMIT in organisation/settings.ts",
  ),
  stream_upstream: other("at most UPSTREAMS_LIMIT for each stream, with URLs and labels of limited length"),
  organisation_logo: other("at most one, of SIZE_LIMIT_BYTES in organisation/logo/logo-image.ts"),
  person: other("at most PEOPLE_LIMIT"),
  person_session: other(
    "at most SESSIONS_LIMIT for each person: a further sign-in ends the one that was used longest ago",
  ),
  identity_provider: other("at most one, its texts limited by the route and its rules by ROLES_LIMIT"),
  person_identity: other("at most IDENTITIES_LIMIT for each person; a further one replaces the oldest"),
  webhook_secret: other("the current one and at most FORMER_LIMIT former ones"),
  webhook_copy: other("at most one, its address limited by the route"),
  webhook_copy_secret: other("as webhook_secret"),
  publish: other(
    "one for each publish, whose rate the organisation's limits bound; publishes are removed by the retention",
  ),
  publish_timeline: other("one for each publish, of limited size, removed with it"),
  outbox: other(
    "one for each publish that was accepted, and alerts, of which at most WAITING_LIMIT of publish/alerts/alert-records.ts " +
      "wait; settled 72 h after it at the latest, and then removed by the retention",
  ),
  webhook_copy_outbox: other("as outbox"),
  delivery: other(
    "ORGANISATION_SIZE_LIMIT_BYTES of publish/webhook/delivery-log.ts each, and a limit for all; the oldest are removed",
  ),
  refusal: other(
    "equal ones are one row; at most ROWS_LIMIT of publish/refusals/refusal-records.ts, then the oldest are removed",
  ),
  usage: other("one for each stream and day"),
  usage_sum: other("one for each organisation and day, summed by triggers"),
  stream_tag: other("one for each tag of a stream, at most TAGS_LIMIT, written by triggers"),
  stream_word: other("one for each word of a stream's name and tags, whose lengths are limited, written by triggers"),
  stream_count: other("one for each organisation, state and counter, written by triggers"),
  stream_external_id: other("at most one for each stream that has such an id"),
  stream_text: other("one for each character of a stream's title and external id, whose lengths are limited"),
  token_revocation: other("one for each stream, and at most REVOKED_LIMIT tokens"),
  token: other(
    "one for each token that was created; at most ROWS_LIMIT of token/token-records.ts, then those that expire first are removed",
  ),
  kept_end: other("one for each publish that is live"),
  token_key: other("the deployment's, not an organisation's"),
  node: other("the deployment's, not an organisation's"),
  sequence: other("the deployment's, not an organisation's"),
  delivery_size: other("one row"),
  delivery_share: other("one row for each organisation"),
  table_share: other("one row for each organisation and counted table"),
} as const satisfies Readonly<Record<keyof Schema, Bound>>;

export type CountedTable = {
  [Table in keyof typeof TABLE_BOUNDS]: (typeof TABLE_BOUNDS)[Table] extends Counted ? Table : never;
}[keyof typeof TABLE_BOUNDS];

const COUNTED_TABLES = Object.entries(TABLE_BOUNDS).flatMap(([table, { by }]) =>
  by === "count" ? [table as CountedTable] : [],
);

type RefusingTable = Exclude<CountedTable, "audit">;

/** The share of an organisation that has as many rows or bytes in the table as it may; else nothing. `reservedBytes`: of
 *  work under way. */
export function fullShare(db: Kysely<Schema>, organisationId: string, table: RefusingTable, reservedBytes = 0) {
  const { rows, bytes } = TABLE_BOUNDS[table];
  return db
    .selectFrom("table_share")
    .select(["rows", "bytes"])
    .where("organisation_id", "=", organisationId)
    .where("table_name", "=", table)
    .where((eb) => eb.or([eb("rows", ">=", rows), eb("bytes", ">=", bytes - reservedBytes)]));
}

/** Why nothing is added to a table that is full for the organisation. */
export function refusalOf(table: RefusingTable, parameter: string): InvalidValue {
  const { rows, bytes, remedy } = TABLE_BOUNDS[table];
  const limit = `${rows} rows or ${bytes / MB} MB`;
  return new InvalidValue(parameter, `exceeds the limit of ${limit} in ${table} for one organisation: ${remedy}`);
}

/** Throws `InvalidValue` for `parameter`, in words, when the organisation has as many rows or bytes as it may. In the
 *  transaction `trx` that adds the row: then requests at the same moment cannot exceed the limit together, because the
 *  embedded store runs one transaction at a time, and PostgreSQL repeats one whose share another has changed. `adds`:
 *  a longer text in a row needs bytes alone. */
export async function checkRoom(
  trx: Kysely<Schema>,
  organisationId: string,
  table: RefusingTable,
  parameter: string,
  adds: "row" | "bytes" = "row",
): Promise<void> {
  if (!trx.isTransaction) throw new TypeError("checkRoom needs the transaction that adds the row");
  const full = await fullShare(trx, organisationId, table).executeTakeFirst();
  if (full === undefined) return;
  if (adds === "row" || Number(full.bytes) >= TABLE_BOUNDS[table].bytes) throw refusalOf(table, parameter);
}

/** Deletes a portion of the oldest audit entries of an organisation that has more than it may. */
export function excessAudit(db: Kysely<Schema>): CompiledQuery {
  const { rows, bytes } = TABLE_BOUNDS.audit;
  const full = db
    .selectFrom("table_share")
    .select("organisation_id")
    .where("table_name", "=", "audit")
    .where((eb) => eb.or([eb("rows", ">", rows), eb("bytes", ">", bytes)]))
    .orderBy("organisation_id")
    .limit(1);
  // A range of one, in the order of the index audit_newest, as in delivery-size.ts.
  const oldest = db
    .selectFrom("audit")
    .select("id")
    .where("organisation_id", ">=", full)
    .where("organisation_id", "<=", full)
    .orderBy("organisation_id")
    .orderBy("id")
    .limit(PORTION);
  return db.deleteFrom("audit").where("id", "in", untaken(db, oldest)).compile();
}

/** Who holds the most bytes in the counted tables and the delivery log, the most first. */
export async function largestHolders(db: Kysely<Schema>, quantity: number) {
  const { rows } = await sql<{ name: string; bytes: number; rows: number }>`
    select organisation.name as name, sum(share.bytes) as bytes, sum(share.rows) as rows from (
      select organisation_id, bytes, rows from table_share
      union all
      select organisation_id, bytes, 0 from delivery_share
    ) as share join organisation on organisation.id = share.organisation_id
    group by organisation.id, organisation.name order by bytes desc limit ${sql.lit(quantity)}
  `.execute(db);
  return rows.map(({ name, bytes, rows: count }) => ({ name, bytes: Number(bytes), rows: Number(count) }));
}

/** The organisation nearest to the bound of a table. */
export interface LargestShare {
  readonly table: CountedTable;
  readonly organisation: string;
  readonly rows: number;
  readonly bytes: number;
  /** Part of what one organisation may have, in rows or bytes, whichever is more: 1 is full. */
  readonly used: number;
}

/** Of each counted table that has rows, the organisation with the largest part of what it may have. Reads all shares. */
export async function largestShares(db: Kysely<Schema>): Promise<readonly LargestShare[]> {
  const largest = COUNTED_TABLES.map(async (table): Promise<readonly LargestShare[]> => {
    const bound = TABLE_BOUNDS[table];
    const [ofRows, ofBytes] = [sql`1.0 * rows / ${sql.lit(bound.rows)}`, sql`1.0 * bytes / ${sql.lit(bound.bytes)}`];
    const share = await db
      .selectFrom("table_share")
      .innerJoin("organisation", "organisation.id", "table_share.organisation_id")
      .select(["organisation.name", "rows", "bytes"])
      .select(sql<number>`case when ${ofRows} > ${ofBytes} then ${ofRows} else ${ofBytes} end`.as("used"))
      .where("table_name", "=", table)
      .where("rows", ">", 0)
      .orderBy("used", "desc")
      .orderBy("organisation.id")
      .limit(1)
      .executeTakeFirst();
    if (share === undefined) return [];
    const { name: organisation, rows, bytes, used } = share;
    return [{ table, organisation, rows: Number(rows), bytes: Number(bytes), used: Number(used) }];
  });
  return (await Promise.all(largest)).flat();
}
