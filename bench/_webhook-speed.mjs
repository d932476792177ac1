// Calls per second of one core over HTTPS keep-alive, compared with a bare undici loop in the same run, in blocks A B B
// A.
import { Agent, request } from "undici";
import { createWebhook } from "../dist/publish/webhook/call.js";
import { newWebhookId } from "../dist/publish/webhook/signature.js";
import { certificate, clock, cpuSince, KEYS, percentile, silent, startCustomer } from "./_webhook.mjs";

const BODY = Buffer.from("passcode=s3cret&call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482");
const IN_FLIGHT = 32;

export async function speed(seconds = 10, rounds = 2) {
  const customer = await startCustomer("ok", "1");
  const webhook = createWebhook({ webhookCa: certificate.cert, dev: true, log: silent, clock });
  const agent = new Agent({ connect: { ca: certificate.cert } });
  const ours = async () => {
    const answer = await webhook.post({
      organisationId: "org",
      url: customer.url,
      id: newWebhookId(),
      body: BODY,
      keys: KEYS,
      deadlineMs: 5_000,
      retryConnection: true,
      event: { call: "publish", clientId: 1, name: "Ab1Cd-9XyZ0", attempt: 1 },
    });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
  };
  const bare = async () => {
    const { body, statusCode } = await request(customer.url, {
      dispatcher: agent,
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: BODY,
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(String(statusCode));
  };
  const blocks = { headgate: [], undici: [] };
  for (const call of [ours, bare]) await load(call, 2, IN_FLIGHT); // opens connections, compiles code
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, call] of [
      ["headgate", ours],
      ["undici", bare],
      ["undici", bare],
      ["headgate", ours],
    ]) {
      const full = await load(call, seconds, IN_FLIGHT);
      const alone = await load(call, 3, 1);
      blocks[name].push({ ...full, alone: alone.times });
      const { perCore, perSecond } = full;
      console.log(JSON.stringify({ name, perSecond: Math.round(perSecond), perCore: Math.round(perCore) }));
    }
  }
  const of = (name) => {
    const times = blocks[name].flatMap(({ alone }) => alone);
    const perCore = percentile(
      blocks[name].map((block) => block.perCore),
      0.5,
    );
    return { perCore, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
  };
  const [a, b] = [of("headgate"), of("undici")];
  const line = (name, { perCore, p50, p99 }) =>
    `  ${name}: ${Math.round(perCore)} calls per CPU second; one at a time p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
  console.log(`\nWebhook over HTTPS keep-alive, ${IN_FLIGHT} in flight\n${line("headgate", a)}\n${line("undici", b)}`);
  console.log(`  added wait p50 ${(a.p50 - b.p50).toFixed(2)} ms, p99 ${(a.p99 - b.p99).toFixed(2)} ms`);
  console.log(`  goal: at least 5000 per core, added p50 at most 1 ms; Node ${process.version}`);
  await webhook.close();
  await agent.close();
  customer.stop();
}

/** Keeps `inFlight` calls in flight. */
async function load(call, seconds, inFlight) {
  const times = [];
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const one = async () => {
    while (performance.now() < until) {
      const from = performance.now();
      await call();
      times.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const took = (performance.now() - startedAt) / 1_000;
  return { perSecond: times.length / took, perCore: times.length / cpuSince(cpu), times };
}
