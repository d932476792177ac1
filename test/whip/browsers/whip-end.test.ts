// How soon a browser notices that we ended its publish: Chromium's own states, from the call of the API on. And how soon
// we give up a tab that was killed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Chromium, startChromium } from "../../support/chromium.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { mediaPasses, sessionOf } from "../../support/drop-outs.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { isWholeRun } from "../../support/whole-run.ts";

/** Number of attempts: the end falls at a random moment between two checks of Chromium, 2.5 s apart. */
const TRIES = Number(process.env.WHIP_END_TRIES ?? (isWholeRun ? 3 : 1));
/** The interval of the checks, and as much again for a busy machine; without the 403 it takes 16 s. */
const FELT_LIMIT_MS = 5_000;
/** A vanished client is given up after 30 s (W19), and publish_done follows within a second. */
const LOST_LIMIT_MS = 36_000;

let customer: Customer;
let headgate: Headgate;
let chromium: Chromium;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  chromium = await startChromium();
}, 60_000);
afterAll(async () => {
  await chromium?.close();
  await headgate?.stop();
  await customer?.close();
});

/** Names of the page's states and how long after the API's call each was entered, ms. */
async function statesAfterStop(settleMs: number): Promise<Readonly<Record<string, number>>> {
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const page = await chromium.open(headgate.whip(ingest.rtmp.streamname));
  expect(await page.start()).toMatchObject({ status: 201 });
  await until("it is connected", async () => (await page.state()) === "connected");
  await page.page.evaluate(`{
    const { connection } = broadcast.running();
    const dtls = connection.getSenders()[0].transport;
    globalThis.states = [];
    const note = (name) => states.push([name, Date.now()]);
    connection.addEventListener("connectionstatechange", () => note(connection.connectionState));
    connection.addEventListener("iceconnectionstatechange", () => note("ice " + connection.iceConnectionState));
    dtls.addEventListener("statechange", () => note("dtls " + dtls.state));
  }`);
  const session = await until("the session", () => sessionOf(headgate, ingest.rtmp.streamname));
  await mediaPasses(headgate, session, settleMs);
  const asked = Date.now();
  await headgate.call("PUT", `/stream/${id}/stop`);
  await until("the connection has failed", async () => (await page.state()) === "failed", 30_000);
  const states = (await page.page.evaluate("states")) as [string, number][];
  await page.page.close();
  return Object.fromEntries(states.map(([name, at]) => [name, at - asked]));
}

test.concurrent("an end by the API closes DTLS immediately and fails the connection at the browser's next check", async () => {
  const felt: number[] = [];
  for (let n = 0; n < TRIES; n += 1) {
    const states = await statesAfterStop(3_000 + ((n * 700) % 2_500));
    console.log(`whip end ${JSON.stringify(states)}`);
    expect(states["dtls closed"]).toBeLessThan(FELT_LIMIT_MS);
    felt.push(states.failed ?? Number.POSITIVE_INFINITY);
  }
  expect(Math.max(...felt)).toBeLessThan(FELT_LIMIT_MS);
}, 180_000);

test.concurrent("a tab that is killed gets one publish_done, within 35 s", async () => {
  const killed = await headgate.newStream();
  const page = await chromium.open(headgate.whip(killed));
  expect(await page.start()).toMatchObject({ status: 201 });
  const session = await until("the session", () => sessionOf(headgate, killed));
  await mediaPasses(headgate, session, 100);
  await page.kill();
  const done = () => customer.calls("publish_done").filter(({ body }) => body.includes(killed));
  await until("publish_done", () => done().length > 0, LOST_LIMIT_MS, 250);
  const metrics = async () => await (await fetch(`${headgate.metrics}/metrics`)).text();
  await until("nothing is left to deliver", async () => /^headgate_outbox_events 0$/m.test(await metrics()));
  expect(done()).toHaveLength(1);
}, 90_000);
