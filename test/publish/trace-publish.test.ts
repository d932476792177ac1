// One trace connects a request with its publish, through the log, and with every call of the customer's
// webhook.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { openStage, STREAM, type Stage, until } from "../support/publishing.ts";
import { openWhipGateway, TO_STREAM, type WhipGateway } from "../support/whip-gateway.ts";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACED = { traceparent: `00-${ID}-00f067aa0ba902b7-01`, tracestate: "congo=t61rcWkgMzE" };
const IN_TRACE = new RegExp(`^00-${ID}-[0-9a-f]{16}-01$`);

const linesOf = (log: string): Record<string, unknown>[] =>
  log
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe("of a WHIP publish", () => {
  let gateway: WhipGateway;
  beforeEach(async () => {
    gateway = await openWhipGateway({ settings: { updateSeconds: 0.2 } });
  });
  afterEach(() => gateway.close());

  test("the webhook calls are spans of the request's trace", async () => {
    const { clientId } = await gateway.opened(TO_STREAM, { headers: TRACED });
    await gateway.customer.received("update_publish");
    gateway.end(clientId);
    await gateway.customer.received("publish_done");
    const calls = ["publish", "update_publish", "publish_done"].map((call) => gateway.customer.calls(call)[0]);
    for (const call of calls) {
      expect(call?.headers.traceparent).toMatch(IN_TRACE);
      expect(call?.headers.tracestate).toBe(TRACED.tracestate);
    }
    expect(new Set(calls.map((call) => call?.headers.traceparent)).size).toBe(3);
  });

  test("the log lines about request, publish and webhook contain it", async () => {
    const { clientId } = await gateway.opened(TO_STREAM, { headers: TRACED });
    gateway.end(clientId);
    await gateway.customer.received("publish_done");
    const messages = ["request answered", "publish started", "webhook called", "publish ended"];
    for (const msg of messages) {
      const lines = linesOf(gateway.log()).filter((line) => line.msg === msg);
      expect([msg, lines.map(({ trace_id }) => trace_id)]).toEqual([msg, lines.map(() => ID)]);
      expect([msg, lines.length > 0]).toEqual([msg, true]);
    }
  });

  test("the log line of a denial contains it", async () => {
    gateway.customer.answer({ status: 403 });
    await gateway.offer(TO_STREAM, { headers: TRACED });
    const [line] = linesOf(gateway.log()).filter(({ msg }) => msg === "publish denied");
    expect(line).toMatchObject({ trace_id: ID, cause: "rejected_by_customer" });
  });

  test("a request without a trace, or with a malformed header, begins one", async () => {
    await gateway.opened(TO_STREAM, { headers: { ...TRACED, traceparent: TRACED.traceparent.toUpperCase() } });
    const [call] = gateway.customer.calls("publish");
    expect(call?.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(call?.headers.traceparent).not.toContain(ID);
    expect(call?.headers.tracestate).toBeUndefined();
  });

  test("pages of any origin may send it", async () => {
    const { headers } = await gateway.call("OPTIONS", "/p/webrtc");
    expect(headers.get("access-control-allow-headers")).toMatch(/traceparent, tracestate/);
  });
});

describe("of an RTMP publish", () => {
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

  const traceOf = (call: string) => customer.calls(call)[0]?.headers.traceparent?.toString().split("-")[1];

  test("it begins with the request", async () => {
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId);
    await customer.received("publish_done");
    const [started] = linesOf(stage.log()).filter(({ msg }) => msg === "publish started");
    expect(started?.trace_id).toMatch(/^[0-9a-f]{32}$/);
    expect([traceOf("publish"), traceOf("publish_done")]).toEqual([started?.trace_id, started?.trace_id]);
  });

  test("it outlives the process: the publish_done after a crash is in the trace of its publish", async () => {
    await stage.allowed(STREAM);
    stage = await stage.crash();
    await stage.publishing.takeOver("gateway_restarted");
    await customer.received("publish_done");
    expect(traceOf("publish_done")).toBe(traceOf("publish"));
    const [line] = linesOf(stage.log()).filter(({ msg }) => msg === "publish ended");
    const about = { organisation: "org1", protocol: "rtmp", reason: "gateway_restarted", bytesIn: 0, bytesOut: 0 };
    expect(line).toMatchObject({ ...about, trace_id: traceOf("publish") });
  });

  test("a test call of the webhook is in the trace of the request for it", async () => {
    const { key } = await addApiKey(stage.db, { organisationId: "org1", role: "administrator", now: stage.clock.ms });
    const headers = { "x-service-apikey": key, "content-type": "application/json", ...TRACED };
    await stage.service.app.request("/organisation/webhook/test", { method: "POST", headers, body: "{}" });
    await until(() => customer.calls("publish")[0]);
    expect(customer.calls("publish")[0]?.headers.traceparent).toMatch(IN_TRACE);
  });
});
