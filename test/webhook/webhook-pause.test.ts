// A pause of our own process is not the customer's fault: an answer that arrived meanwhile is read before the
// deadline decides.
import { Worker } from "node:worker_threads";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { createWebhook } from "../../ts/publish/webhook/call.ts";
import { testCertificates } from "../support/customer.ts";

const DEADLINE_MS = 500;
/** On a thread of its own: it answers while this one is blocked. */
const CUSTOMER = `
  const { parentPort, workerData } = require("node:worker_threads");
  let asked = 0;
  const server = require("node:https").createServer(workerData, (request, response) => {
    parentPort.postMessage({ asked: ++asked });
    setTimeout(() => response.writeHead(204).end(), 50);
    request.resume();
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage({ port: server.address().port }));
`;

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

test("an answer that arrived while the process was blocked beyond the deadline counts", async () => {
  const { ca, key, cert } = testCertificates();
  const customer = new Worker(CUSTOMER, { eval: true, workerData: { key, cert } });
  open.push({ close: () => customer.terminate() });
  const said = (name: "asked" | "port", least: number) =>
    new Promise<number>((resolve) => {
      customer.on("message", (words) => words[name] >= least && resolve(words[name]));
    });
  const port = await said("port", 1);
  const webhook = createWebhook({ webhookCa: ca, dev: true, log: pino({ level: "silent" }), clock: { now: () => 0 } });
  open.push(webhook);
  const event = { call: "publish", clientId: 1, name: "Ab1Cd-x", attempt: 1 } as const;
  const url = `https://127.0.0.1:${port}/`;
  const call = { organisationId: "org1", url, id: "msg_1", body: Buffer.from("call=publish"), keys: [], event };
  const post = (deadlineMs: number) => webhook.post({ ...call, deadlineMs, retryConnection: false });
  // The connection is established: only the answer is missing when the process is blocked.
  expect(await post(10_000)).toMatchObject({ status: 204 });
  const asked = said("asked", 2);
  const answer = post(DEADLINE_MS);
  await asked;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * DEADLINE_MS);
  expect(await answer).toMatchObject({ outcome: "answered", status: 204 });
});
