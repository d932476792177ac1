// After an outage many organisations have several due events each: what does their delivery cost the publishes of another
// customer, how long does it take, and how even is it? Every organisation has a URL of its own, so each needs a connection.
import { offer } from "./_offer.mjs";
import { openPublishing } from "./_publishing.mjs";
import { percentile, startCustomer, wait } from "./_webhook.mjs";

const B_PER_SECOND = 20;
const B_STREAMS = 400;
const ROWS_AT_A_TIME = 100;
/** Deliveries are counted in windows of this length, ms; the first ones are the ramp. */
const WINDOW_MS = 2_000;
const RAMP_WINDOWS = 1;
/** All must be delivered by then, ms. */
const LIMIT_MS = 300_000;

/** @type {(organisations: number, events: number) => Promise<{
 *    alone: number[];
 *    beside: number[];
 *    denied: number;
 *    left: number;
 *    seconds: number;
 *    best: number;
 *    worst: number;
 *  }>} */
export async function outage(organisations, events) {
  const good = await startCustomer("ok");
  const gateway = await openPublishing();
  await gateway.addOrganisation("bbbbb", good.url, B_STREAMS);
  await addBacklog(gateway.db, organisations, events, good.url);
  let denied = 0;
  const askB = async (at) => {
    const { allowed, clientId, tookMs } = await gateway.request(`bbbbb-${at % B_STREAMS}`);
    if (allowed) gateway.end(clientId);
    else denied += 1;
    return tookMs;
  };
  const alone = await offer(B_PER_SECOND, 5, askB);
  const startedAt = performance.now();
  await gateway.publishing.takeOver("gateway_restarted");
  const [beside, delivered] = [[], []];
  let left = organisations * events;
  while (left > 0 && performance.now() - startedAt < LIMIT_MS) {
    beside.push(...(await offer(B_PER_SECOND, WINDOW_MS / 1_000, askB)));
    const now = await backlogOf(gateway.db);
    delivered.push(left - now);
    left = now;
    await wait(0);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  await gateway.close();
  good.stop();
  // The last window is not a whole one.
  const steady = delivered.slice(RAMP_WINDOWS, -1);
  const [best, worst] = [Math.max(...steady), Math.min(...steady)];
  const line = (name, times) =>
    `  B ${name}: ${times.length} publishes, admission p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;
  console.log(
    `${organisations} organisations with ${events} due events each; B has ${B_PER_SECOND} publishes a second`,
  );
  console.log(`${line("alone", alone)}\n${line("beside their delivery", beside)}; ${denied} denied`);
  console.log(
    `  ${left} events left after ${seconds.toFixed(1)} s; in ${WINDOW_MS / 1_000} s at best ${best}, at least ${worst}`,
  );
  console.log(`  by window: ${delivered.join(" ")}`);
  console.log("  goals: p99 200 ms, none denied, all within 300 s, at least half of the best");
  return { alone, beside, denied, left, seconds, best, worst };
}

/** Each organisation's events were refused three times before the outage ended, the last time at the same moment. */
async function addBacklog(db, organisations, events, url) {
  const now = Date.now();
  const all = Array.from({ length: organisations }, (_, at) => `x${String(at).padStart(5, "0")}`);
  for (let at = 0; at < all.length; at += ROWS_AT_A_TIME) {
    const ids = all.slice(at, at + ROWS_AT_A_TIME);
    const hook = (id) => `${url}${id}`;
    const common = { plan: "paid", enabled: 1, created_at: 0, updated_at: 0 };
    await db
      .insertInto("organisation")
      .values(ids.map((id) => ({ id, hash: id, name: id, webhook: hook(id), ...common })))
      .execute();
    const rows = ids.flatMap((id, n) =>
      Array.from({ length: events }, (_, event) => {
        const client_id = 1_000_000_000 + (at + n) * events + event;
        const body = `call=publish_done&name=${id}-0&bytes_in=1&bytes_out=1&app=live&addr=203.0.113.7&clientid=${client_id}`;
        const times = { next_attempt_at: now, created_at: now - 60_000, attempts: 3 };
        return { id: `msg_${client_id}`, organisation_id: id, client_id, url: hook(id), body, ...times };
      }),
    );
    for (let from = 0; from < rows.length; from += ROWS_AT_A_TIME) {
      await db
        .insertInto("outbox")
        .values(rows.slice(from, from + ROWS_AT_A_TIME))
        .execute();
    }
  }
}

async function backlogOf(db) {
  const { left } = await db
    .selectFrom("outbox")
    .select((eb) => eb.fn.countAll().as("left"))
    .where("delivered_at", "is", null)
    .where("id", "like", "msg_1%")
    .executeTakeFirstOrThrow();
  return Number(left);
}
