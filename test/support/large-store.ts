// Rows of an organisation with many streams, publishes and records, and how many rows a statement reads of them.
import { CompiledQuery, DefaultQueryExecutor, type Kysely, sql } from "kysely";
import type { Schema } from "../../ts/store/schema.ts";
import { stepsOf } from "./query-plans.ts";
import { ON_POSTGRES } from "./stores.ts";

/** Tables that grow with what an organisation does. */
const LARGE = [
  ...["stream", "stream_tag", "stream_word", "stream_text", "stream_external_id"],
  ...["publish", "usage", "delivery", "audit", "outbox", "webhook_copy_outbox", "refusal", "token"],
  ...["api_key", "person", "person_session", "person_identity"],
];

/** Streams added at a time. */
const PORTION = 5_000;
/** Of `addManyPeople`. */
const ORGANISATIONS = 2_000;

/** Adds `count` streams with two tags, a title and an external id each, and for each of them `publishes` publishes, a delivery, an audit entry and
 *  the bytes of a day. */
export async function addManyRows(
  db: Kysely<Schema>,
  organisationId: string,
  { count, publishes }: { readonly count: number; readonly publishes: number },
): Promise<void> {
  // In portions: a statement has 10 s.
  for (let from = 0; from < count; from += PORTION) {
    const most = Math.min(PORTION, count - from);
    for (const statement of rowsOf(organisationId, { from, most, publishes })) await sql.raw(statement).execute(db);
  }
  await sql.raw("analyze").execute(db);
}

/** Adds `count` people with a session, an identity and a revoked key each, in many organisations. */
export async function addManyPeople(db: Kysely<Schema>, count: number): Promise<void> {
  const numbers = numbersOf(0, count);
  const org = `'people-' || ${text(`i % ${ORGANISATIONS}`)}`;
  for (const statement of [
    `insert into organisation (id, hash, name, plan, enabled, created_at, updated_at)
     select ${org}, ${org}, ${org}, 'paid', 1, 1, 1 from ${numbersOf(0, ORGANISATIONS)}`,
    `insert into person (id, organisation_id, email, role, password_hash, created_at, updated_at)
     select 'p-' || ${text("i")}, ${org}, 'p' || ${text("i")} || '@many.example', 'readonly', '', 1, 1 from ${numbers}`,
    `insert into person_session (hash, person_id, created_at, last_seen_at)
     select 's-' || ${text("i")}, 'p-' || ${text("i")}, 1800000000000, 1800000000000 from ${numbers}`,
    `insert into person_identity (organisation_id, issuer, subject, person_id, created_at)
     select ${org}, 'https://login.example', ${text("i")}, 'p-' || ${text("i")}, 1 from ${numbers}`,
    `insert into api_key (id, organisation_id, role, hash, created_at, revoked_at)
     select 'many-' || ${text("i")}, ${org}, 'user', 'many-' || ${text("i")}, 1, 1 from ${numbers}`,
    "analyze",
  ]) {
    await sql.raw(statement).execute(db);
  }
}

const text = (value: string) => `cast(${value} as text)`;

/** A table `n` with a column `i`: the numbers from `from` to below `to`. */
const numbersOf = (from: number, to: number) =>
  ON_POSTGRES
    ? `generate_series(${from}, ${to - 1}) as n(i)`
    : `(with recursive c(i) as (select ${from} union all select i + 1 from c where i < ${to - 1}) select i from c) as n`;

function rowsOf(
  organisationId: string,
  { from, most, publishes }: Readonly<Record<"from" | "most" | "publishes", number>>,
): readonly string[] {
  const numbers = (times = 1) => numbersOf(from * times, (from + most) * times);
  const org = `'${organisationId}'`;
  const id = `'m-' || ${text("i")}`;
  return [
    `insert into stream (id, organisation_id, name, state, tags, title, external_id, found_by, created_at, updated_at)
     select ${id}, ${org}, 'Many0-' || ${text("i")}, case when i % 2 = 0 then 'created' else 'ended' end,
       '["common","event-' || ${text("i")} || '"]', 'Show ' || ${text("i")}, 'id-' || ${text("i")},
       'show ' || ${text("i")} || '\nid-' || ${text("i")}, 1700000000000 + i, 1700000000000 + i from ${numbers()}`,
    `insert into stream_external_id (organisation_id, external_id, stream_id)
     select ${org}, 'id-' || ${text("i")}, ${id} from ${numbers()}`,
    `insert into stream_text (organisation_id, word, stream_id)
     select ${org}, substr('show ' || ${text("i")}, cast(place.value as integer)), ${id}
     from ${numbers()}, json_each('[1,2,3,4,5,6,7,8]') as place where true on conflict do nothing`,
    `insert into publish (client_id, organisation_id, stream_id, name, app, address, state, asked_at, ended_at, bytes_in, bytes_out)
     select 1000000 + i, ${org}, 'm-' || ${text(`i / ${publishes}`)}, 'Many0', 'live', '', case when i % 5 = 0 then 'denied' else 'ended' end, 1700000000000 + i, 1700000000000 + i, 1, 1
     from ${numbers(publishes)}`,
    `insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
     select ${id}, '2025-12-15', ${org}, 1, 1 from ${numbers()}`,
    `insert into audit (id, organisation_id, at, who_kind, action, subject, detail)
     select '01700' || ${text("100000000 + i")} || '000000000000', ${org}, 1, 'operator', 'stream.create', ${id}, '{}' from ${numbers()}`,
    `insert into delivery (id, organisation_id, client_id, call, name, url, body, outcome, status, latency_ms, attempts, first_at, last_at, bytes)
     select 'many_' || ${text("i")}, ${org}, i, 'publish', 'Many0-' || ${text("i % 10")}, 'https://a.example/', '', 'answered', 200, 1, 1, 1700000000000 + i, 1700000000000 + i, 10
     from ${numbers()}`,
    `insert into refusal (id, organisation_id, stream_id, request, protocol, reason, address, count, first_at, last_at)
     select 'r-' || ${text("i")}, case when i % 4 = 0 then '' else ${org} end, case when i % 4 = 0 then null else 'm-' || ${text("i % 3")} end,
       case when i % 2 = 0 then 'publish' else 'play' end, 'rtmp', 'full', '203.0.113.7', 1, 1700000000000 + i, 1700000000000 + i
     from ${numbers(2)}`,
    `insert into token (id, organisation_id, kind, name, made_by_kind, made_by, revision, made_at, expires_at)
     select 't-' || ${text("i")}, ${org}, 'broadcast', 'Many0-' || ${text("i % 10")}, 'key', 'k-' || ${text("i % 3")}, 0, 1700000000000 + i, 1900000000000 + i
     from ${numbers()}`,
    ...["outbox", "webhook_copy_outbox"].map(
      (
        table,
      ) => `insert into ${table} (id, organisation_id, client_id, url, body, attempts, next_attempt_at, created_at, delivered_at)
     select ${id}, ${org}, i, 'https://a.example/', '', 1, 1, 1700000000000 + i, 1700000000000 from ${numbers()}`,
    ),
  ];
}

/** Records the statements of every Kysely instance of this process until `stop`. */
export function recordStatements(reads: Kysely<Schema>): {
  /** By their text; `isRead`: executed on `reads`. */
  readonly statements: Map<string, { readonly query: CompiledQuery; readonly isRead: boolean }>;
  stop(): void;
} {
  const statements = new Map<string, { readonly query: CompiledQuery; readonly isRead: boolean }>();
  const { adapter } = reads.getExecutor();
  const { executeQuery } = DefaultQueryExecutor.prototype;
  DefaultQueryExecutor.prototype.executeQuery = async function (query, ...rest) {
    statements.set(query.sql, { query, isRead: this.adapter === adapter });
    return (await executeQuery.call(this, query, ...rest)) as never;
  };
  return {
    statements,
    stop: () => {
      DefaultQueryExecutor.prototype.executeQuery = executeQuery;
    },
  };
}

/** Counts the statements that are executed, by their text. */
export function countStatements(): { readonly counts: ReadonlyMap<string, number>; stop(): void } {
  const counts = new Map<string, number>();
  const { executeQuery } = DefaultQueryExecutor.prototype;
  DefaultQueryExecutor.prototype.executeQuery = async function (query, ...rest) {
    counts.set(query.sql, (counts.get(query.sql) ?? 0) + 1);
    return (await executeQuery.call(this, query, ...rest)) as never;
  };
  return {
    counts,
    stop: () => {
      DefaultQueryExecutor.prototype.executeQuery = executeQuery;
    },
  };
}

interface Analysed {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Analysed[];
}

/** What is wrong with a statement: it scans a large table, or reads more than `most` rows of one. Selects are executed
 *  on PostgreSQL. */
export async function faultsOf(db: Kysely<Schema>, query: CompiledQuery, most: number): Promise<readonly string[]> {
  if (!/^\s*(select|insert|update|delete|with)/i.test(query.sql)) return [];
  const scans = (await stepsOf(db, query))
    .filter(({ table, reads }) => LARGE.includes(table.replaceAll('"', "")) && reads === "whole table")
    .map(({ table }) => `scans ${table}`);
  if (!ON_POSTGRES || !/^\s*select/i.test(query.sql)) return scans;
  const explain = CompiledQuery.raw(`explain (analyze, format json) ${query.sql}`, [...query.parameters]);
  const { rows } = await db.executeQuery<{ "QUERY PLAN": readonly { readonly Plan: Analysed }[] }>(explain);
  const read = rows.flatMap((row) => row["QUERY PLAN"].flatMap(({ Plan }) => [...nodesOf(Plan)]));
  const large = read
    .filter(({ name }) => LARGE.some((table) => name.endsWith(` ${table}`)))
    .filter(({ rows: count }) => count > most)
    .map(({ name, rows: count }) => `${name}: ${count} rows`);
  return [...scans, ...large];
}

function* nodesOf(node: Analysed): Generator<{ readonly name: string; readonly rows: number }> {
  const each = (node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0);
  yield {
    name: `${node["Node Type"]} ${node["Relation Name"] ?? ""}`.trim(),
    rows: each * (node["Actual Loops"] ?? 1),
  };
  for (const below of node.Plans ?? []) yield* nodesOf(below);
}
