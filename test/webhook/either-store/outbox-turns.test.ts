// Many customers that hang, each with many queued events, do not delay a healthy one.
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { openStage, type Stage } from "../../support/publishing.ts";

const HANGING = 50;
/** Per customer; the measurement uses 10,000. */
const EVENTS = Number(process.env.OUTBOX_EVENTS ?? 100);
/** Generous: the goal is a second. */
const SOON_MS = 4_000;
const ROWS_AT_A_TIME = 50;
/** No hanging delivery ends before the test: an endpoint that times out is called less often. */
const DEADLINE_MS = 60_000;

let hanging: Customer;
let healthy: Customer;
let stage: Stage;

beforeEach(async () => {
  hanging = await startCustomer();
  hanging.answer("hang");
  healthy = await startCustomer();
  // Both have certificates of one CA.
  const settings = { deadlineMs: DEADLINE_MS };
  stage = await openStage({ webhook: healthy.url, ca: `${healthy.ca}\n${hanging.ca}`, settings });
});
afterEach(async () => {
  await stage.close();
  await hanging.close();
  await healthy.close();
});

async function addOrganisation(id: string, url: string): Promise<void> {
  const [now, common] = [stage.clock.ms, { plan: "paid", enabled: 1 } as const];
  const values = { id, hash: id, name: id, webhook: url, created_at: now, updated_at: now, ...common };
  await stage.db.insertInto("organisation").values(values).execute();
}

async function addEvents(organisation: string, url: string, from: number, count: number): Promise<void> {
  for (let at = 0; at < count; at += ROWS_AT_A_TIME) {
    const rows = Array.from({ length: Math.min(ROWS_AT_A_TIME, count - at) }, (_, n) => ({
      id: `msg_${from + at + n}`,
      organisation_id: organisation,
      client_id: from + at + n,
      url,
      body: `call=publish_done&name=Ab1Cd-x&clientid=${from + at + n}`,
      next_attempt_at: stage.clock.ms,
      created_at: stage.clock.ms,
    }));
    await stage.db.insertInto("outbox").values(rows).execute();
  }
}

test(
  "a healthy customer receives its event while fifty others hang",
  async () => {
    for (let n = 0; n < HANGING; n += 1) {
      await addOrganisation(`hang${n}`, hanging.url);
      await addEvents(`hang${n}`, hanging.url, 1_000_000 * (n + 1), EVENTS);
    }
    await stage.publishing.takeOver("gateway_restarted");
    await until("each has its first in flight", () => hanging.calls("publish_done").length >= HANGING, 30_000);
    const delays: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const id = 500 + round;
      await addEvents("org1", healthy.url, id, 1);
      const started = performance.now();
      await stage.publishing.takeOver("gateway_restarted");
      await until("it is delivered", () =>
        healthy.calls("publish_done").some(({ body }) => body.endsWith(`clientid=${id}`)),
      );
      delays.push(Math.round(performance.now() - started));
    }
    console.log(`outbox ${JSON.stringify({ hanging: HANGING, events: EVENTS, delays })}`);
    expect(Math.max(...delays)).toBeLessThan(SOON_MS);
  },
  120_000 + EVENTS * 20,
);
