// The short form of how retention affects publishers. The long one prints its figures: `npm run bench --
// pruning`. It runs the build in dist.
import { expect, test } from "vitest";
import { pruning } from "../../../bench/_pruning.mjs";
import { databaseUrlOf } from "../../support/stores.ts";
import { isWholeRun } from "../../support/whole-run.ts";

/** How much there is to delete, and how long publishes are offered in each part. */
const SIZE = isWholeRun ? { rows: 5_000, seconds: 0.5 } : { rows: 1_000, seconds: 0.2, warmUpSeconds: 0.2 };

test("while old records of every kind are deleted, every publish is admitted", async () => {
  const { kinds, denied } = await pruning({ ...SIZE, databaseUrl: await databaseUrlOf("pruning") });
  expect(kinds.map(({ kind }) => kind)).toEqual(["publishes", "audit", "deliveries", "denied"]);
  for (const { kind, rows } of kinds) expect(rows, kind).toBeGreaterThan(0);
  expect(denied).toBe(0);
}, 120_000);
