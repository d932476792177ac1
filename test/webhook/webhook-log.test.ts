// The log lines at debug of a call to a customer: where it went, how long each step took, its outcome, and no
// secret. At info there are none.
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { createWebhook } from "../../ts/publish/webhook/call.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { until } from "../support/publishing.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

const MS = expect.any(Number);

async function start(level: string, options: { readonly resolve?: () => Promise<string[]> } = {}) {
  const customer: Customer = await startCustomer();
  const lines: string[] = [];
  // A busy machine makes a customer slow, which is a line of its own.
  const write = (line: string) => void (line.includes("answered slowly") || lines.push(line));
  const log = pino({ level, base: null }, { write });
  const webhook = createWebhook({ webhookCa: customer.ca, dev: true, log, clock: { now: () => 0 }, ...options });
  open.push(webhook, customer);
  const event = { call: "publish", clientId: 7, name: "Ab1Cd-secretname", attempt: 1 } as const;
  const body = Buffer.from("passcode=s3cret&call=publish&name=Ab1Cd-secretname");
  const common = { organisationId: "org1", id: "msg_1", body, keys: [Buffer.alloc(32, 7)], event };
  return {
    customer,
    lines,
    async call(url = customer.url, more: { readonly deadlineMs?: number; readonly retryConnection?: boolean } = {}) {
      lines.length = 0;
      await webhook.post({ ...common, url, deadlineMs: 2_000, retryConnection: false, ...more });
      expect(lines.join("")).not.toMatch(/s3cret|secretname|webhook-secret|v1,|hook\?/);
      const { time: _, ...line } = JSON.parse(lines.at(-1) ?? "{}");
      return line;
    },
  };
}

test("a first call has DNS, connection, TLS and first byte, the next one on the same connection only its first byte", async () => {
  const { call, customer } = await start("debug", { resolve: async () => ["127.0.0.1"] });
  const { host } = new URL(customer.url);
  const about = {
    level: 20,
    clientId: 7,
    organisation: "org1",
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    call: "publish",
    webhookId: "msg_1",
    host,
    delivery: 1,
  };
  const fresh = { resolved: ["127.0.0.1"], address: "127.0.0.1", dnsMs: MS, connectMs: MS, tlsMs: MS };
  const said = { status: 200, tookMs: MS, waitedMs: MS, msg: "webhook called" };
  expect(await call()).toStrictEqual({ ...about, attempts: [{ ...fresh, firstByteMs: MS, status: 200 }], ...said });
  const reused = { address: "127.0.0.1", reused: true, firstByteMs: MS, status: 200 };
  // The call after another may be made before its connection is free again.
  const next = await until(async () => {
    const line = await call();
    return line.attempts[0].reused && line;
  });
  expect(next).toStrictEqual({ ...about, attempts: [reused], ...said });
});

test("a call without an answer has the steps it reached", async () => {
  const { call, customer } = await start("debug", { resolve: async () => ["127.0.0.1"] });
  customer.answer("hang");
  const connected = { address: "127.0.0.1", connectMs: MS, tlsMs: MS, firstByteMs: null, cause: "deadline" };
  expect(await call(customer.url, { deadlineMs: 300 })).toMatchObject({ cause: "deadline", attempts: [connected] });
});

test("each attempt has its own line", async () => {
  const { call, customer } = await start("debug", { resolve: async () => ["127.0.0.1"] });
  await customer.close();
  const line = await call(customer.url, { retryConnection: true });
  const refused = { address: null, dnsMs: MS, connectMs: null, tlsMs: null, cause: "connection_refused" };
  expect(line).toMatchObject({ attempts: [refused, refused], cause: "connection_refused" });
});

test("at info there is no such line", async () => {
  const { call, lines, customer } = await start("info");
  expect(await call()).toEqual({});
  expect([customer.requests.length, lines]).toEqual([1, []]);
});
