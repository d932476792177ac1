// R10: a service that receives a signal accepts no new publish, keeps running ones until its deadline, and
// delivers every end. A second signal ends them.
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun } from "../support/whole-run.ts";

const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");
const DRAIN_S = 5;
/** A signal within this time counts as the same one, ms. */
const SAME_SIGNAL_MS = 1_000;
/** After a second signal (R10). */
const SECOND_SIGNAL_LIMIT_MS = 2_000;

let customer: Customer;
let headgate: Headgate | null = null;
let encoder: Broadcast | null = null;

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(async () => {
  encoder?.kill("SIGKILL");
  headgate?.process.kill("SIGKILL");
  await headgate?.process.exit;
  await customer.close();
});

/** A service with a running publish. */
async function publishing(drainS: number): Promise<Headgate> {
  const started = await startHeadgate({ customer, env: { HEADGATE_DRAIN_S: String(drainS) } });
  headgate = started;
  encoder = broadcast(`${started.rtmp}/${await started.newStream()}`, { seconds: 120 });
  await until("the publish runs", () => started.process.stderr().includes("publish started"));
  return started;
}

inWholeRun("open event streams do not delay the end: they end with the service", async () => {
  const { process: service, http, apiKey } = await publishing(0);
  const answer = await fetch(`${http}/organisation/events`, { headers: { "x-service-apikey": apiKey } });
  expect(answer.status).toBe(200);
  const events = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  expect((await events?.read())?.value).toContain("event: sessions");
  service.kill("SIGTERM");
  while ((await events?.read())?.done === false);
  expect(await service.exit).toBe(0);
});

test("a draining service refuses new publishes, keeps the running one until its deadline, then exits with 0", async () => {
  const { process: service, whip, rtmp, newStream } = await publishing(DRAIN_S);
  const [byWhip, byRtmp] = [await newStream(), await newStream()];
  const told = performance.now();
  service.kill("SIGTERM");

  const offer = (name: string) =>
    fetch(whip(name), { method: "POST", headers: { "content-type": "application/sdp" }, body: OFFER });
  // With a name that does not exist: an offer before the signal would be a publish.
  await until("it drains", async () => (await offer("none")).status === 503);
  const refused = await offer(byWhip);
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const late = broadcast(`${rtmp}/${byRtmp}`, { seconds: 120 });
  expect(await late.exit).not.toBe(0);
  // Both publishers were refused without asking the customer.
  expect(customer.calls("publish")).toHaveLength(1);

  expect(await service.exit).toBe(0);
  expect(performance.now() - told).toBeGreaterThanOrEqual(DRAIN_S * 1_000);
  expect(customer.calls("publish_done")).toHaveLength(1);
  expect(service.stderr()).toContain("publish ended");
}, 90_000);

inWholeRun(
  "a draining service exits as soon as its last publish has ended",
  async () => {
    const { process: service } = await publishing(600);
    service.kill("SIGTERM");
    encoder?.kill("SIGTERM");
    expect(await service.exit).toBe(0);
    expect(customer.calls("publish_done")).toHaveLength(1);
  },
  60_000,
);

test("a second signal ends a drain within two seconds, and the end of the publish is delivered", async () => {
  const { process: service } = await publishing(600);
  service.kill("SIGTERM");
  await until("it drains", async () => {
    const answer = await fetch(`${headgate?.whip("none")}`, { method: "POST", body: OFFER });
    return answer.status === 503;
  });
  const again = performance.now();
  // The first of these that comes a second after the first signal is the second one.
  const impatient = setInterval(() => service.kill("SIGINT"), 100);
  expect(await service.exit.finally(() => clearInterval(impatient))).toBe(0);
  expect(performance.now() - again).toBeLessThan(SAME_SIGNAL_MS + SECOND_SIGNAL_LIMIT_MS);
  expect(customer.calls("publish_done")).toHaveLength(1);
}, 60_000);

inWholeRun(
  "one ^C that arrives twice, as through npm, only drains, and the log says for how many publishes",
  async () => {
    const { process: service } = await publishing(DRAIN_S);
    const told = performance.now();
    service.kill("SIGINT");
    service.kill("SIGTERM");
    expect(await service.exit).toBe(0);
    expect(performance.now() - told).toBeGreaterThanOrEqual(DRAIN_S * 1_000);
    expect(service.stderr()).toMatch(/"running":1,"limitS":5[^\n]*draining/);
    expect(service.stderr()).toMatch(/"running":1[^\n]*drained/);
  },
  60_000,
);
