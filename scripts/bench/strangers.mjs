// What one organisation's requests cost everybody else: `npm run bench -- strangers [STREAMS] [SECONDS] [DATABASE_URL]`, by
// default 1,000,000 and 20 on the embedded store. Organisation A has that many streams; its key searches, lists, tags and
// exports as fast as it may, and its dashboards are open, while B publishes. The database must be empty; it is emptied in
// the end.
import { sql } from "kysely";
import { addApiKey } from "../../dist/organisation/api-keys.js";
import { emptyDatabase, requireEmpty } from "./_filled-store.mjs";
import { offer } from "./_offer.mjs";
import { openPublishing } from "./_publishing.mjs";
import { clock, percentile, startCustomer, wait } from "./_webhook.mjs";

const B_PER_SECOND = 20;
const B_STREAMS = 400;
/** Rows per statement. */
const AT_A_TIME = 5_000;
/** Requests of A that wait for their answers at the same time, of each kind: more than its key's rate lets through. */
const AT_ONCE = { searches: 40, lists: 8, tags: 8, exports: 2 };
const DASHBOARDS = 20;
const GOAL_MS = 50;
const GOAL_RATIO = 1.2;

export async function bench([streams = 1_000_000, seconds = 20, databaseUrl = null]) {
  if (databaseUrl !== null) await requireEmpty(databaseUrl);
  const customer = await startCustomer("ok");
  const gateway = await openPublishing({ apiRequestsPerSecond: 20 }, undefined, clock, databaseUrl);
  await gateway.addOrganisation("bbbbb", customer.url, B_STREAMS);
  await gateway.addOrganisation("aaaaa", null, 1);
  const filledAt = performance.now();
  await addStreams(gateway.db, Number(streams), databaseUrl !== null);
  console.log(`${streams} streams of A after ${Math.round((performance.now() - filledAt) / 1_000)} s`);
  const { key } = await addApiKey(gateway.db, { organisationId: "aaaaa", role: "administrator", now: clock.now() });
  const askB = async (at) => {
    const { allowed, clientId, tookMs } = await gateway.request(`bbbbb-${at % B_STREAMS}`);
    if (allowed) gateway.end(clientId);
    return { allowed, tookMs };
  };
  await offer(B_PER_SECOND, 2, askB);
  const alone = await offer(B_PER_SECOND, Number(seconds), askB);
  const stranger = besiege(gateway.service.app, key);
  await wait(1_000);
  const beside = await offer(B_PER_SECOND, Number(seconds), askB);
  const answers = await stranger.stop();
  report(alone, beside, answers);
  await gateway.close();
  customer.stop();
  if (databaseUrl !== null) await emptyDatabase(databaseUrl);
}

async function addStreams(db, count, isPostgres) {
  for (let from = 0; from < count; from += AT_A_TIME) {
    const last = Math.min(count, from + AT_A_TIME) - 1;
    const numbers = isPostgres
      ? `generate_series(${from}, ${last}) as n(i)`
      : `(with recursive c(i) as (select ${from} union all select i + 1 from c where i < ${last}) select i from c) as n`;
    const text = "cast(i as text)";
    const statement = `insert into stream (id, organisation_id, name, state, tags, created_at, updated_at)
      select 'a-' || ${text}, 'aaaaa', 'aaaaa-x' || ${text}, 'created', '["common","event-' || ${text} || '"]', i, i from ${numbers}`;
    await sql.raw(statement).execute(db);
  }
  await sql.raw("analyze").execute(db);
}

/** A's requests, each kind again as soon as it is answered. */
function besiege(app, key) {
  const answers = new Map();
  const aborted = new AbortController();
  const headers = { "x-service-apikey": key, "content-type": "application/json" };
  const ask = async (path, options = {}) => {
    const response = await app.request(path, { headers, ...options });
    await response.text();
    answers.set(response.status, (answers.get(response.status) ?? 0) + 1);
    // As a client does that is told to wait; it knows no better otherwise.
    if (response.status === 429 || response.status === 503) await wait(100);
  };
  let turn = 0;
  const requests = {
    searches: () => ask(`/stream?search=${["zzzz", "event-99", "x1", "common"][turn++ % 4]}`),
    lists: () => ask(`/stream?tags[]=common&quantity=500`),
    tags: () => ask(`/stream/a-${turn++ % 1_000}/tag`, { method: "PUT", body: `{"tags":["common","new-${turn}"]}` }),
    exports: () => ask("/organisation/usage?from=2026-01-01&to=2026-03-31"),
  };
  const repeat = async (request) => {
    while (!aborted.signal.aborted) await request();
  };
  const loops = Object.entries(AT_ONCE).flatMap(([name, times]) =>
    Array.from({ length: times }, () => repeat(requests[name])),
  );
  const dashboards = Array.from({ length: DASHBOARDS }, async () => {
    const response = await app.request("/organisation/events", { headers, signal: aborted.signal });
    const reader = response.body.getReader();
    aborted.signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
    while (!(await reader.read()).done);
  });
  return {
    async stop() {
      aborted.abort();
      await Promise.allSettled([...loops, ...dashboards]);
      return answers;
    },
  };
}

function report(alone, beside, answers) {
  const p99 = {};
  for (const [name, all] of Object.entries({ alone, "beside A": beside })) {
    const times = all.map(({ tookMs }) => tookMs);
    const denied = all.filter(({ allowed }) => !allowed).length;
    p99[name] = percentile(times, 0.99);
    const [p50, most] = [percentile(times, 0.5), Math.max(...times)].map((ms) => ms.toFixed(1));
    console.log(`  B ${name}: p50 ${p50} ms, p99 ${p99[name].toFixed(1)} ms, at most ${most} ms, ${denied} denied`);
  }
  console.log(`  p99 beside A / alone: ${(p99["beside A"] / p99.alone).toFixed(2)}`);
  console.log(`  A's answers: ${[...answers].map(([status, count]) => `${count} × ${status}`).join(", ")}`);
  console.log(`  goals: ${GOAL_RATIO} × alone and never above ${GOAL_MS} ms, none denied`);
}
