// What one organisation's requests cost everybody else: `npm run bench -- strangers [STREAMS] [SECONDS] [DATABASE_URL]`, by
// default 1,000,000 and 20 on the embedded store. Organisation A has that many streams; its key searches, lists, tags and
// exports as fast as it may, and its dashboards are open, while B publishes. The database must be empty; it is emptied in
// the end.
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { listen } from "../dist/listen/http-port.js";
import { addApiKey } from "../dist/organisation/api-keys.js";
import { endingWithUs } from "./_ending.mjs";
import { emptyDatabase, requireEmpty } from "./_filled-store.mjs";
import { offer } from "./_offer.mjs";
import { openPublishing } from "./_publishing.mjs";
import { clock, percentile, startCustomer, wait } from "./_webhook.mjs";

const B_PER_SECOND = 20;
const B_STREAMS = 400;
/** Rows per statement. */
const AT_A_TIME = 5_000;
/** A's first requests compile what they run, ms. */
const WARM_UP_MS = 3_000;
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
  const port = await listen(gateway.service.app.fetch, { host: "127.0.0.1", port: 0, name: "http.port" });
  const stranger = besiege(`http://127.0.0.1:${port.port}`, key);
  await wait(WARM_UP_MS);
  const beside = await offer(B_PER_SECOND, Number(seconds), askB);
  const answers = await stranger.stop();
  report(alone, beside, answers);
  gateway.service.events.stop();
  await port.stop();
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
    const number = "cast(i as text)";
    const statement = `insert into stream (id, organisation_id, name, state, tags, created_at, updated_at)
      select 'a-' || ${number}, 'aaaaa', 'aaaaa-x' || ${number}, 'created', '["common","event-' || ${number} || '"]', i, i from ${numbers}`;
    await sql.raw(statement).execute(db);
  }
  // What was written at once is settled before anything is measured: a server would do that for a minute afterwards.
  for (const statement of isPostgres
    ? ["vacuum analyze", "checkpoint"]
    : ["analyze", "pragma wal_checkpoint(truncate)"]) {
    await sql.raw(statement).execute(db);
  }
}

/** A's programs; `stop` resolves with the number of answers by status. */
function besiege(url, key) {
  const file = fileURLToPath(new URL("./_besieger.mjs", import.meta.url));
  const child = endingWithUs(spawn(process.execPath, [file, url, key], { stdio: ["pipe", "pipe", "inherit"] }));
  const counted = text(child.stdout);
  return {
    async stop() {
      child.stdin.end();
      return Object.entries(JSON.parse(await counted));
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
  console.log(`  A's answers: ${answers.map(([status, count]) => `${count} × ${status}`).join(", ")}`);
  console.log(`  goals: ${GOAL_RATIO} × alone and never above ${GOAL_MS} ms, none denied`);
}
