// The short form of how retention affects publishers. The long one prints its figures: `npm run bench --
// pruning`. It runs the build in dist.
import { expect, test } from "vitest";
import { pruning } from "../../../bench/_pruning.mjs";
import { databaseUrlOf } from "../../support/stores.ts";

test("while old records of every kind are deleted, every publish is admitted", async () => {
  const { kinds, denied } = await pruning({ rows: 5_000, seconds: 0.5, databaseUrl: await databaseUrlOf("pruning") });
  expect(kinds.map(({ kind }) => kind)).toEqual(["publishes", "audit", "deliveries", "denied"]);
  for (const { kind, rows } of kinds) expect(rows, kind).toBeGreaterThan(0);
  expect(denied).toBe(0);
}, 120_000);
