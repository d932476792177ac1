// The second webhook: copies of all calls and alerts, with its own secret, log and failures. It decides nothing, and
// nothing waits for it. Real HTTPS servers.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verify } from "../../../ts/client/webhook.ts";
import { setCopyAddress } from "../../../ts/organisation/webhook/copy-address.ts";
import { type Customer, type CustomerRequest, startCustomer } from "../../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../../support/publishing.ts";

const everything = { call: null, clientId: null, name: null, failed: false, before: null, quantity: 500 };

let customer: Customer;
let second: Customer;
let stage: Stage;

beforeEach(async () => {
  [customer, second] = await Promise.all([startCustomer(), startCustomer()]);
});
afterEach(async () => {
  await stage.close();
  await Promise.all([customer.close(), second.close()]);
});

async function open(events: "all" | "alerts" = "all", settings: Parameters<typeof openStage>[0]["settings"] = {}) {
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings });
  await setCopies(events);
}

async function setCopies(events: "all" | "alerts" | null): Promise<void> {
  await setCopyAddress(stage.db, "org1", events && { url: second.url, events }, stage.clock.ms);
  await stage.change({});
}

/** The `count`th request with this `call`, from 1. */
const arrived = (at: Customer, call: string, count = 1) => until(() => at.calls(call)[count - 1]);
const callsTo = (of: Customer) => of.requests.map(({ call }) => call);
const field = ({ body }: CustomerRequest, name: string) => new URLSearchParams(body).get(name);
const eventsAt = (of: Customer) => of.calls("health").map((request) => field(request, "event"));
const outboxOf = (table: "outbox" | "webhook_copy_outbox") => stage.db.selectFrom(table).selectAll().execute();

/** A live publish with media; `upstream`: the state of its only one. */
function sample(clientId: number, { silentMs = 0, upstream }: { silentMs?: number; upstream?: "sending" | "waiting" }) {
  const { media, clock, service } = stage;
  const tracks = { video: null, audio: { codec: "aac" } };
  const one = { id: "up1", url: "rtmp://up.example/live/…", since: clock.ms, lastError: "refused", bytesOut: 0 };
  const upstreams = upstream === undefined ? [] : [{ ...one, state: upstream }];
  clock.ms += 5_000;
  media.measure(clientId, { silentMs, bytesIn: clock.ms, tracks: tracks as never, upstreams: upstreams as never });
  service.measurements.addPoints();
}

describe("copies", () => {
  test("of the three calls arrive in their order, byte by byte, signed with the second secret", async () => {
    await open("all", { updateSeconds: 0.05 });
    const secret = await stage.db.transaction().execute((trx) => stage.service.appDeps.copySecrets.rotate(trx, "org1"));
    await stage.change({});
    const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
    stage.media.measure(clientId, {});
    await arrived(second, "update_publish");
    stage.end(clientId, "unpublished", { bytesIn: 5, bytesOut: 6 });
    await arrived(second, "publish_done");
    const calls = callsTo(second);
    expect([calls[0], calls.at(-1)]).toEqual(["publish", "publish_done"]);
    expect(new Set(calls.slice(1, -1))).toEqual(new Set(["update_publish"]));
    await arrived(customer, "publish_done");
    for (const call of ["publish", "publish_done"]) {
      const [copy] = second.calls(call);
      const [original] = customer.calls(call);
      expect(copy?.body).toBe(original?.body);
      expect(copy?.headers["webhook-id"]).not.toBe(original?.headers["webhook-id"]);
      const options = { now: stage.clock.ms };
      await verify(copy?.headers ?? {}, Buffer.from(copy?.body ?? "", "latin1"), secret, options);
      const forged = verify(original?.headers ?? {}, Buffer.from(original?.body ?? "", "latin1"), secret, options);
      await expect(forged).rejects.toThrow();
    }
  });

  test("decide nothing: a second webhook that refuses everything changes no publish", async () => {
    await open("all", { updateSeconds: 0.05 });
    second.answer({ status: 403, body: "never" });
    const clientId = await stage.allowed(STREAM);
    stage.media.measure(clientId, {});
    await arrived(second, "update_publish", 2);
    expect(stage.media.commands.some(({ command }) => command === "end")).toBe(false);
    stage.end(clientId);
    await arrived(customer, "publish_done");
  });

  test.each(["hang", "reset"] as const)(
    "delay no publish and no publish_done while the second webhook does %s",
    async (way) => {
      await open();
      second.answer(way);
      const names = Array.from({ length: 30 }, (_, at) => `Ab1Cd-copy${at}`);
      for (const name of names) await addStream(stage.db, name, "created");
      for (const name of names) stage.end(await stage.allowed(name));
      // All are decided and delivered, in spite of copies that nobody has answered.
      await arrived(customer, "publish", names.length);
      await until(
        async () => (await outboxOf("outbox")).filter((row) => row.delivered_at !== null).length === names.length,
      );
      const copies = await outboxOf("webhook_copy_outbox");
      expect([copies.length, copies.filter((row) => row.delivered_at !== null).length]).toEqual([names.length, 0]);
    },
  );

  test("of publish_done outlive the process, and arrive when the second webhook answers again", async () => {
    await open();
    second.answer("reset");
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId);
    await until(async () => (await outboxOf("webhook_copy_outbox")).length === 1);
    stage = await stage.crash();
    second.answer({ status: 204 });
    stage.clock.ms += 3_600_000;
    await stage.publishing.takeOver("gateway_restarted");
    const done = await arrived(second, "publish_done");
    expect(field(done, "clientid")).toBe(String(clientId));
    await until(async () => (await outboxOf("webhook_copy_outbox")).every((row) => row.delivered_at !== null));
  });

  test("have a log of their own, in which any success is one", async () => {
    await open();
    second.answer(({ call }) => ({ status: call === "publish" ? 500 : 204 }));
    const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
    stage.end(clientId);
    await arrived(second, "publish_done");
    const { workbench } = stage.publishing;
    const listed = async (copies: boolean, failed = false) =>
      (await workbench.list("org1", { ...everything, copies, failed })).deliveries;
    const all = await until(async () => {
      const found = await listed(true);
      return found.length === 2 && found;
    });
    expect(new Set(all.map(({ url }) => url))).toEqual(new Set([second.url]));
    expect(JSON.stringify(all)).not.toContain("s3cret");
    expect((await listed(true, true)).map(({ call, status }) => [call, status])).toEqual([["publish", 500]]);
    expect((await listed(false)).every(({ url }) => url === customer.url)).toBe(true);
    expect((await listed(false, true)).length).toBe(0);
    // A replay goes to the second webhook, too.
    const id = all.find(({ call }) => call === "publish")?.id ?? "";
    const before = second.calls("publish").length;
    await workbench.replay("org1", id, async () => {});
    expect(second.calls("publish").length).toBe(before + 1);
  });

  test("that wait are withdrawn when the second webhook is removed", async () => {
    await open();
    second.answer({ status: 500 });
    stage.end(await stage.allowed(STREAM));
    await arrived(second, "publish_done");
    await setCopies(null);
    await until(async () => {
      stage.clock.ms += 1_000;
      await stage.publishing.takeOver("gateway_restarted");
      return (await outboxOf("webhook_copy_outbox")).every((row) => row.given_up_at !== null);
    });
  });
});

describe("alerts", () => {
  test("tell when a stream has no media and has it again, and an upstream is lost and back", async () => {
    await open("alerts");
    const clientId = await stage.allowed(STREAM, { arguments: "show=1" });
    sample(clientId, { upstream: "sending" });
    sample(clientId, { silentMs: 6_000, upstream: "waiting" });
    await arrived(second, "health", 2);
    expect(eventsAt(second)).toEqual(["media_lost", "upstream_lost"]);
    stage.clock.ms += 60_000;
    sample(clientId, { upstream: "sending" });
    await arrived(second, "health", 4);
    expect(eventsAt(second).slice(2)).toEqual(["media_back", "upstream_back"]);
    const [lost] = second.calls("health");
    expect(lost?.body).toMatch(/^show=1&call=health&event=media_lost&since=2026-\S+&detail=Nothing\+arrives\S*&name=/);
    expect(lost && [field(lost, "name"), field(lost, "clientid")]).toEqual([STREAM, String(clientId)]);
    // The second webhook gets alerts alone, and the first has not asked for any.
    expect(new Set(callsTo(second))).toEqual(new Set(["health"]));
    expect(customer.calls("health")).toEqual([]);
  });

  test("go to the webhook when the organisation's setting says so, before the publish_done, and decide nothing", async () => {
    await open("all");
    await stage.change({ health_events: true });
    customer.answer(({ call }) => ({ status: call === "health" ? 403 : 200 }));
    const clientId = await stage.allowed(STREAM);
    sample(clientId, { silentMs: 6_000 });
    await until(async () => (await outboxOf("outbox")).length === 1);
    stage.end(clientId);
    await arrived(customer, "publish_done");
    expect(callsTo(customer)).toEqual(["publish", "health", "publish_done"]);
    expect(stage.media.commands.some(({ command }) => command === "end")).toBe(false);
    await arrived(second, "publish_done");
    expect(callsTo(second)).toEqual(["publish", "health", "publish_done"]);
  });

  test("of a state that comes and goes are at most one in a minute", async () => {
    await open("alerts");
    const clientId = await stage.allowed(STREAM);
    for (let at = 0; at < 24; at += 1) sample(clientId, { silentMs: at % 2 === 0 ? 6_000 : 0 });
    const waiting = await until(async () => {
      const rows = await outboxOf("webhook_copy_outbox");
      return rows.length >= 2 && rows;
    });
    // Two minutes: the loss, and what has changed since a minute later.
    expect(waiting.length).toBe(2);
  });

  test("that were not delivered outlive the process", async () => {
    await open("alerts");
    second.answer("reset");
    const clientId = await stage.allowed(STREAM);
    sample(clientId, { silentMs: 6_000 });
    await until(async () => (await outboxOf("webhook_copy_outbox")).length === 1);
    stage = await stage.crash();
    second.answer({ status: 200 });
    stage.clock.ms += 30_000;
    await stage.publishing.takeOver("gateway_restarted");
    await until(async () => (await outboxOf("webhook_copy_outbox")).some((row) => row.delivered_at !== null));
    expect(new Set(eventsAt(second))).toEqual(new Set(["media_lost"]));
  });

  test("tell the second webhook when the first one fails and answers again", async () => {
    await open("alerts");
    customer.answer({ status: 500 });
    for (let at = 0; at < 4; at += 1) {
      expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
      stage.clock.ms += 5_000;
    }
    const failing = await arrived(second, "health");
    expect([field(failing, "event"), field(failing, "clientid")]).toEqual(["webhook_failing", null]);
    expect(field(failing, "detail")).toContain("status 500");
    customer.answer({ status: 200 });
    stage.clock.ms += 60_000;
    await stage.allowed(STREAM);
    await arrived(second, "health", 2);
    expect(eventsAt(second)).toEqual(["webhook_failing", "webhook_back"]);
    expect(customer.calls("health")).toEqual([]);
  });

  test("that a webhook does not answer delay no publish_done", async () => {
    await open("alerts");
    await stage.change({ health_events: true });
    customer.answer(({ call }) => (call === "health" ? "reset" : { status: 200 }));
    const clientId = await stage.allowed(STREAM);
    sample(clientId, { silentMs: 6_000 });
    await arrived(customer, "health");
    stage.end(clientId);
    await arrived(customer, "publish_done");
    const alert = (await outboxOf("outbox")).find((row) => row.call === "health");
    expect([alert?.delivered_at, alert?.given_up_at]).toEqual([null, null]);
  });
});
