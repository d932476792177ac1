// W6: client ids are unique for the life of the deployment, whatever the number and order of processes that
// take blocks.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CLIENT_ID_BLOCK, createClientIds } from "../../../ts/publish/client-ids.ts";
import type { Store } from "../../../ts/store/open.ts";
import { openTestStore } from "../../support/stores.ts";

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-client-ids-"));
  store = await openTestStore(folder);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

async function take(ids: { next(): Promise<number> }, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) taken.push(await ids.next());
  return taken;
}

test("they increase by one from block to block, starting at 1", async () => {
  const ids = await take(createClientIds(store.db), 2 * CLIENT_ID_BLOCK + 1);
  expect(ids).toEqual(ids.map((_, at) => at + 1));
});

test("two processes that alternate, each with its own blocks, never use the same id", async () => {
  const [one, two] = [createClientIds(store.db), createClientIds(store.db)];
  const taken: number[] = [];
  for (let turn = 0; turn < 2 * CLIENT_ID_BLOCK + 1; turn += 1) taken.push(await one.next(), await two.next());
  expect(new Set(taken).size).toBe(taken.length);
});

test("a thousand concurrent requests get a thousand ids", async () => {
  const ids = createClientIds(store.db);
  const taken = await Promise.all(Array.from({ length: CLIENT_ID_BLOCK + 5 }, () => ids.next()));
  expect(new Set(taken).size).toBe(taken.length);
});

test("a restart begins a new block, and never repeats an id", async () => {
  const before = await take(createClientIds(store.db), 3);
  const after = await take(createClientIds(store.db), 3);
  expect(before).toEqual([1, 2, 3]);
  expect(after).toEqual([CLIENT_ID_BLOCK + 1, CLIENT_ID_BLOCK + 2, CLIENT_ID_BLOCK + 3]);
});
