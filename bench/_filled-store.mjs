// A store with many old rows, made by bulk SQL: publishes, deliveries and audit entries of the last half year. The same
// statements for the embedded store and for PostgreSQL.
import { join } from "node:path";
import Database from "libsql";
import pg from "pg";
import { openStore } from "../dist/store/open.js";

const DAY_MS = 86_400_000;
/** Period over which the rows are spread, days: half of the publishes are older than their retention. */
const SPREAD_DAYS = 180;
const STREAMS = 20_000;
/** Rows per statement. */
const AT_A_TIME = 100_000;
/** One publish in this many was denied. */
const DENIED_EACH = 20;
/** Publishes per delivery, and per audit entry. */
const SPARSER = 10;
const FILLED = ["publish", "delivery", "audit"];

/** Fills the store of the empty `folder`, or the empty database at `databaseUrl`, with `rows` publishes and a tenth
 *  as many deliveries and audit entries; the oldest are `SPREAD_DAYS` before `now`, epoch ms. The store must not be
 *  open elsewhere. */
export async function fillStore({ folder, databaseUrl, rows, now }) {
  await (await openStore({ dataDir: folder, databaseUrl })).close();
  const store = databaseUrl === null ? openFile(folder) : await openDatabase(databaseUrl);
  try {
    const indexes = await store.indexes();
    for (const { name } of indexes) await store.run(`drop index ${name}`);
    await store.run(
      `insert into organisation (id, hash, name, plan, enabled, created_at, updated_at)
       values ('past', 'past0', 'past', 'paid', 1, 0, 0)`,
    );
    await inPortions(store, STREAMS, streams);
    await inPortions(store, rows, (from, to) => publishes(from, to, now - SPREAD_DAYS * DAY_MS, spacing(rows)));
    const fewer = Math.ceil(rows / SPARSER);
    await inPortions(store, fewer, (from, to) => deliveries(from, to, now - SPREAD_DAYS * DAY_MS, spacing(fewer)));
    await inPortions(store, fewer, (from, to) => audit(from, to, now - SPREAD_DAYS * DAY_MS, spacing(fewer)));
    await store.run(`insert into sequence (name, next) values ('client_id', ${rows + 1})`);
    for (const { definition } of indexes) await store.run(definition);
    await store.settle();
  } finally {
    await store.close();
  }
}

/** Rejects if the database is not empty, because its content is removed in the end. */
export async function requireEmpty(databaseUrl) {
  await connected(databaseUrl, async (client) => {
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public' limit 1");
    if (rows.length > 0) throw new Error(`the database is not empty: it has a table ${rows[0].tablename}`);
  });
}

export async function emptyDatabase(databaseUrl) {
  await connected(databaseUrl, (client) => client.query("drop schema public cascade; create schema public"));
}

/** Interval between two rows, ms. */
const spacing = (rows) => (SPREAD_DAYS * DAY_MS) / rows;

async function inPortions(store, rows, statement) {
  for (let from = 1; from <= rows; from += AT_A_TIME) {
    await store.run(statement(from, Math.min(rows, from + AT_A_TIME - 1)));
  }
}

const numbers = (from, to) =>
  `with recursive numbers(n) as (select cast(${from} as bigint) union all select n + 1 from numbers where n < ${to})`;
/** Neighbouring rows belong to different streams, as they do where many publish. */
const streamOf = `'stream ' || (n * 7919 % ${STREAMS})`;
const timeOf = (first, every) => `cast(${first} + n * ${every} as bigint)`;

const streams = (from, to) => `
  insert into stream (id, organisation_id, name, state, tags, created_at, updated_at) ${numbers(from, to)}
  select 'stream ' || (n - 1), 'past', 'past0-' || (n - 1), 'ended', '[]', 0, 0 from numbers`;

const publishes = (from, to, first, every) => `
  insert into publish (client_id, organisation_id, stream_id, name, app, arguments, address, webhook, state, asked_at,
    accepted_at, ended_at, end_reason, bytes_in, bytes_out) ${numbers(from, to)}
  select n, 'past', ${streamOf}, 'past0-' || (n * 7919 % ${STREAMS}), 'live', 'passcode=0123456789', '203.0.113.7',
    'https://customer.example/hook', case when n % ${DENIED_EACH} = 0 then 'denied' else 'ended' end,
    ${timeOf(first, every)}, ${timeOf(first, every)}, ${timeOf(first, every)}, 'unpublished', 1000000, 1000000
  from numbers`;

/** Random-looking ids. */
const deliveries = (from, to, first, every) => `
  insert into delivery (id, organisation_id, client_id, call, name, url, body, outcome, status, latency_ms, attempts,
    first_at, last_at, bytes) ${numbers(from, to)}
  select 'msg_' || (n * 2654435761 % 4294967296) || '_' || n, 'past', n, 'publish', 'past0-x',
    'https://customer.example/hook', 'call=publish&name=past0-x&app=live&addr=203.0.113.7&clientid=' || n, 'answered',
    200, 12, 1, ${timeOf(first, every)}, ${timeOf(first, every)}, 500
  from numbers`;

const audit = (from, to, first, every) => `
  insert into audit (id, organisation_id, at, who_kind, who_id, action, subject, detail, request_id) ${numbers(from, to)}
  select '0' || ${timeOf(first, every)} || (100000000000 + n), 'past', ${timeOf(first, every)}, 'key', 'k',
    'stream.create', 'x', '{"name":"past0-x"}', null
  from numbers`;

const ofFilled = FILLED.map((table) => `'${table}'`).join(", ");

/** No other program has it open, and it is thrown away if this fails: nothing needs to be durable yet. */
function openFile(folder) {
  const db = new Database(join(folder, "headgate.db"));
  for (const setting of ["foreign_keys = off", "synchronous = off", "cache_size = -500000"]) {
    db.prepare(`pragma ${setting}`).all();
  }
  return {
    run: async (statement) => void db.exec(statement),
    indexes: async () =>
      db
        .prepare(
          `select name, sql as definition from sqlite_master
           where type = 'index' and sql is not null and tbl_name in (${ofFilled})`,
        )
        .all(),
    settle: async () => void db.prepare("pragma wal_checkpoint(truncate)").all(),
    close: async () => void db.close(),
  };
}

async function connected(databaseUrl, act) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await act(client);
  } finally {
    await client.end();
  }
}

async function openDatabase(databaseUrl) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  return {
    run: async (statement) => void (await client.query(statement)),
    indexes: async () => {
      const { rows } = await client.query(
        `select indexname as name, indexdef as definition from pg_indexes
         where schemaname = 'public' and tablename in (${ofFilled}) and indexname not like '%_pkey'`,
      );
      return rows;
    },
    /** The server does the same by itself within a minute, but it must not happen during a measurement. */
    settle: async () => void (await client.query("vacuum analyze")),
    close: () => client.end(),
  };
}
