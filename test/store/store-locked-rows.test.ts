// Rows of PostgreSQL locked by a client that stops responding: a node that is paused in the middle of a
// transaction.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { Client } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEnds } from "../../ts/publish/ends.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { addStream } from "../support/publishing.ts";

let server: PostgresServer;
let databaseUrl: string;
let store: Store;
const dataDir = mkdtempSync(join(tmpdir(), "headgate-locked-rows-"));

beforeAll(async () => {
  server = await startPostgres();
  databaseUrl = await server.newDatabase();
  store = await openStore({ dataDir, databaseUrl });
});
afterAll(async () => {
  await store?.close();
  await server?.close();
  rmSync(dataDir, { recursive: true });
});

test("a transaction that stops responding releases its rows before others time out", async () => {
  const { db } = store;
  await db.insertInto("sequence").values({ name: "held", next: 1 }).execute();
  const take = (next: number) => db.updateTable("sequence").set({ next }).where("name", "=", "held").execute();
  let wake = () => {};
  const paused = new Promise<void>((resolve) => {
    wake = resolve;
  });
  let hasRow = () => {};
  const held = new Promise<void>((resolve) => {
    hasRow = resolve;
  });
  const transaction = db.transaction().execute(async (trx) => {
    await trx.updateTable("sequence").set({ next: 2 }).where("name", "=", "held").execute();
    hasRow();
    await paused;
    await trx.updateTable("sequence").set({ next: 3 }).where("name", "=", "held").execute();
  });
  const outcome = transaction.then(
    () => "committed",
    () => "failed",
  );
  await held;
  await take(10);
  wake();
  expect(await outcome).toBe("failed");
  expect(await db.selectFrom("sequence").select("next").where("name", "=", "held").execute()).toEqual([{ next: 10 }]);
}, 30_000);

test("a locked row of one publish does not prevent the others of its dead node from ending", async () => {
  const { db } = store;
  await sql`insert into organisation (id, hash, name, plan, enabled, created_at, updated_at)
    values ('org1', 'Ab1Cd', 'Org', 'paid', 1, 0, 0)`.execute(db);
  for (const clientId of [1, 2, 3]) {
    const name = `Ab1Cd-${clientId}`;
    await addStream(db, name, "live");
    await sql`insert into publish (client_id, organisation_id, stream_id, name, app, address, protocol, state, asked_at,
      bytes_in, bytes_out, epoch)
      values (${clientId}, 'org1', ${`stream ${name}`}, ${name}, 'live', '192.0.2.1', 'rtmp', 'live', 0, 0, 0, 99)`.execute(
      db,
    );
  }
  const outbox = { hold() {}, release() {}, wake() {} };
  const ends = createEnds({ db, outbox, clock: { now: () => 5 }, log: pino({ level: "silent" }) });
  const ended = async () =>
    (
      await db.selectFrom("publish").select("client_id").where("state", "=", "ended").orderBy("client_id").execute()
    ).map(({ client_id }) => Number(client_id));
  const holder = new Client({ connectionString: databaseUrl });
  await holder.connect();
  await holder.query("begin");
  await holder.query("update publish set bytes_in = 1 where client_id = 1");
  await expect(ends.recordOrphans("node_lost", 7)).rejects.toThrow();
  expect(await ended()).toEqual([2, 3]);
  await holder.query("rollback");
  await holder.end();
  await ends.recordOrphans("node_lost", 7);
  expect(await ended()).toEqual([1, 2, 3]);
}, 30_000);
