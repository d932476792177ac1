// Transactions whose statements are known in advance, on both stores.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Store } from "../../../ts/store/open.ts";
import { together, togetherWith } from "../../../ts/store/statements/together.ts";
import { openTestStore } from "../../support/stores.ts";

let folder: string;
let store: Store;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-together-"));
  store = await openTestStore(folder);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const insert = (name: string) => store.db.insertInto("sequence").values({ name, next: 1 }).compile();
const names = () => store.db.selectFrom("sequence").select("name").where("name", "like", "t%").orderBy("name");
const kept = async () => (await names().execute()).map(({ name }) => name);

test("all take effect, and the last one sees what the others did", async () => {
  const raise = store.db.updateTable("sequence").set({ next: 2 }).where("name", "in", ["t1", "t2"]).compile();
  const { changes, rows } = await togetherWith(store.db, [insert("t1"), insert("t2"), raise], names().compile());
  expect([changes, rows]).toEqual([
    [1, 1, 2],
    [{ name: "t1" }, { name: "t2" }],
  ]);
});

test("none takes effect when one fails, the failure is its own, and the next transaction works", async () => {
  const before = await kept();
  await expect(together(store.db, [insert("t3"), insert("t3"), insert("t4")])).rejects.toThrow(/unique/i);
  expect(await kept()).toEqual(before);
  expect(await together(store.db, [insert("t5"), insert("t6")])).toEqual([1, 1]);
});

test("concurrent ones that change the same row are all carried out", async () => {
  const raise = () =>
    store.db
      .updateTable("sequence")
      .set((eb) => ({ next: eb("next", "+", 1) }))
      .where("name", "=", "many")
      .compile();
  await together(store.db, [insert("many"), insert("others")]);
  await Promise.all(Array.from({ length: 8 }, () => together(store.db, [raise(), raise()])));
  const row = store.db.selectFrom("sequence").select("next").where("name", "=", "many");
  expect(Number((await row.executeTakeFirstOrThrow()).next)).toBe(17);
});
