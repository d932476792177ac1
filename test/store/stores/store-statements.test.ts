// The guarantees of a statement and a transaction, the same on both stores: vitest.config.ts runs this file
// on each.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StoreFailed } from "../../../ts/errors.ts";
import type { Store } from "../../../ts/store/open.ts";
import { together } from "../../../ts/store/statements/together.ts";
import { openTestStore } from "../../support/stores.ts";

let folder: string;
const open: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-store-"));
});

afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function opened(): Promise<Store> {
  const store = await openTestStore(join(folder, "data"));
  open.push(store);
  return store;
}

const organisation = (id: string) => ({
  id,
  hash: id,
  name: "Test",
  plan: "paid" as const,
  enabled: 1,
  webhook: null,
  created_at: 1_767_225_600_000,
  updated_at: 1_767_225_600_000,
});

describe("statements", () => {
  test("that are queued together all succeed or fail on their own", async () => {
    const { db } = await opened();
    const insert = (id: string) => db.insertInto("organisation").values(organisation(id)).execute();
    const outcomes = await Promise.allSettled(["a", "b", "a", "c"].map(insert));
    const [a, b, again, c] = outcomes.map(({ status }) => status);
    expect([b, c]).toEqual(["fulfilled", "fulfilled"]);
    // Several connections to PostgreSQL take them in any order.
    expect([a, again].sort()).toEqual(["fulfilled", "rejected"]);
    expect(await db.selectFrom("organisation").select("id").orderBy("id").execute()).toEqual([
      { id: "a" },
      { id: "b" },
      { id: "c" },
    ]);
  });

  test("report how many rows they changed", async () => {
    const { db } = await opened();
    await db
      .insertInto("sequence")
      .values([
        { name: "a", next: 1 },
        { name: "b", next: 1 },
      ])
      .execute();
    const change = (next: number) =>
      db.updateTable("sequence").set({ next: 2 }).where("next", "=", next).executeTakeFirst();
    expect((await change(1)).numUpdatedRows).toBe(2n);
    expect((await change(1)).numUpdatedRows).toBe(0n);
  });

  test("keep whole numbers whole up to 2^53", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values({ name: "a", next: Number.MAX_SAFE_INTEGER }).execute();
    expect(await db.selectFrom("sequence").selectAll().execute()).toEqual([
      { name: "a", next: Number.MAX_SAFE_INTEGER },
    ]);
  });

  test("refuse values that libsql would abort on or alter", async () => {
    const { db } = await opened();
    for (const value of [true, undefined, {}, "a\0b", "\ud800"]) {
      await expect(sql`select ${value}`.execute(db)).rejects.toThrow(TypeError);
    }
  });

  test("reject with StoreFailed and leave the store usable", async () => {
    const { db } = await opened();
    await expect(sql`select nothing from nowhere`.execute(db)).rejects.toThrow(StoreFailed);
    expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
  });

  test("reject once the store is closed", async () => {
    const { db, close } = await opened();
    await close();
    await expect(sql`select 1`.execute(db)).rejects.toThrow();
  });
});

describe("transactions", () => {
  test("are isolated: nothing else sees or joins them", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values({ name: "a", next: 0 }).execute();
    const add = () =>
      db.transaction().execute(async (trx) => {
        const { next } = await trx.selectFrom("sequence").selectAll().executeTakeFirstOrThrow();
        await trx
          .updateTable("sequence")
          .set({ next: next + 1 })
          .execute();
      });
    await Promise.all(Array.from({ length: 50 }, add));
    expect(await db.selectFrom("sequence").select("next").execute()).toEqual([{ next: 50 }]);
  });

  test("that throw leave nothing behind, and queued statements run after them", async () => {
    const { db } = await opened();
    const failing = db.transaction().execute(async (trx) => {
      await trx.insertInto("sequence").values({ name: "a", next: 0 }).execute();
      throw new Error("no");
    });
    const waiting = db.insertInto("sequence").values({ name: "b", next: 0 }).execute();
    await expect(failing).rejects.toThrow("no");
    await waiting;
    expect(await db.selectFrom("sequence").select("name").execute()).toEqual([{ name: "b" }]);
  });
});

describe("statements in a batch", () => {
  const rename = sql`update sequence set name = 'b' where name = 'a'`;
  const count = sql`update sequence set next = next + 1 where name = 'a'`;
  const broken = sql`insert into sequence (name, next) values ('b', null)`;

  test("all take effect or none, beside others queued at the same time", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values({ name: "a", next: 0 }).execute();
    const outcomes = await Promise.allSettled([
      together(db, [count.compile(db), broken.compile(db)]),
      together(db, [count.compile(db), rename.compile(db), rename.compile(db)]),
      db.insertInto("sequence").values({ name: "c", next: 9 }).execute(),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    expect(await db.selectFrom("sequence").select(["name", "next"]).orderBy("name").execute()).toEqual([
      { name: "b", next: 1 },
      { name: "c", next: 9 },
    ]);
  });

  test("report how many rows each of them changed", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values({ name: "a", next: 0 }).execute();
    expect(
      await together(
        db,
        [count, rename, rename].map((query) => query.compile(db)),
      ),
    ).toEqual([1, 1, 0]);
  });

  test("wait until a transaction has ended", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values({ name: "a", next: 5 }).execute();
    const first = db.transaction().execute(async (trx) => {
      const { next } = await trx.selectFrom("sequence").selectAll().executeTakeFirstOrThrow();
      const waiting = together(db, [count.compile(db)]);
      await trx
        .updateTable("sequence")
        .set({ next: next * 2 })
        .execute();
      return { waiting };
    });
    await (await first).waiting;
    expect(await db.selectFrom("sequence").select("next").execute()).toEqual([{ next: 11 }]);
  });
});
