// The embedded store under WAL: a slow read has a thread of its own, so it delays neither the admission of publishes nor
// their ends.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStore } from "../../ts/store/open.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { addStream, openStage, type Stage } from "../support/publishing.ts";

/** A read that is so slow that nothing may wait for it, ms. */
const SLOW_MS = 1_300;
/** Far less than it takes, and far more than an admission with its webhook call does on a busy machine, ms. */
const SOON_MS = 1_000;
/** Rows of a counting read that takes a moment; from it follows how many take `SLOW_MS`. */
const COUNTED = 1_000_000;

let customer: Customer;
let stage: Stage;
beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

const counting = (rows: number) => sql`
  with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${sql.lit(rows)})
  select max(n) as n from counted
`;

/** Runs `act` again and again beside one slow read on `reads`; resolves with the times of `act`, ms. */
async function besideSlowRead(act: (round: number) => Promise<unknown>): Promise<readonly number[]> {
  const began = performance.now();
  await counting(COUNTED).execute(stage.reads);
  const share = SLOW_MS / (performance.now() - began);
  for (let rows = Math.ceil(COUNTED * share * 1.6); ; rows *= 2) {
    const times: number[] = [];
    let isReading = true;
    const startedAt = performance.now();
    const reading = counting(rows)
      .execute(stage.reads)
      .finally(() => {
        isReading = false;
      });
    for (let round = 0; isReading; round += 1) {
      const from = performance.now();
      await act(round);
      times.push(performance.now() - from);
    }
    await reading;
    if (performance.now() - startedAt >= SLOW_MS) return times;
  }
}

test("publishes are decided by the webhook, and end, while another organisation's read takes seconds", async () => {
  let broadcasts = 0;
  const names: string[] = [];
  for (let at = 0; at < 200; at += 1) {
    names.push(`Ab1Cd-${String(at).padStart(5, "0")}`);
    await addStream(stage.db, names[at] ?? "", "created");
  }
  const times = await besideSlowRead(async () => {
    const clientId = await stage.allowed(names[broadcasts % names.length] ?? "");
    broadcasts += 1;
    stage.end(clientId);
    await customer.received("publish_done", broadcasts);
  });
  expect(times.length).toBeGreaterThan(2);
  expect(customer.calls("publish").length).toBeGreaterThanOrEqual(times.length);
  expect(Math.max(...times)).toBeLessThan(SOON_MS);
}, 60_000);

test("a read by a route is one of these, and sees what was written before it", async () => {
  const reading = counting(COUNTED).execute(stage.reads);
  const clientId = await stage.allowed("Ab1Cd-9XyZ0");
  await reading;
  const rows = await stage.reads.selectFrom("publish").select("client_id").execute();
  expect(rows.map(({ client_id }) => Number(client_id))).toEqual([clientId]);
});

test("what reads cannot write", async () => {
  await expect(stage.reads.updateTable("stream").set({ tags: "[]" }).execute()).rejects.toThrow(/readonly|read-only/);
});

test("a command beside the service has one thread, which is enough for it", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-command-"));
  try {
    const store = await openStore({ dataDir, databaseUrl: null, access: "command" });
    expect(store.reads).toBe(store.db);
    await store.close();
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
