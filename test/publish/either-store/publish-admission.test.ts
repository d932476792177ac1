// Who may publish: docs/webhook.md, decisions W10–W13, W17a, W20–W24, W26.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, type StageOptions } from "../../support/publishing.ts";
import { startRedirectTarget } from "../../support/redirects.ts";
import { casesOfRun } from "../../support/whole-run.ts";

let customer: Customer;
let stage: Stage;

async function open(options: Partial<StageOptions> = {}): Promise<Stage> {
  stage = await openStage({ webhook: customer.url, ca: customer.ca, ...options });
  return stage;
}

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

const denied = () =>
  expect.poll(async () => (await stage.db.selectFrom("publish").select("state").execute()).map((row) => row.state));
const publishRow = () => stage.db.selectFrom("publish").selectAll().executeTakeFirstOrThrow();
const streamState = async () =>
  (await stage.db.selectFrom("stream").select("state").where("name", "=", STREAM).executeTakeFirstOrThrow()).state;

/** A TCP port in front of the customer. */
async function openDoor(connected: (socket: Socket) => void): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    connected(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `https://localhost:${(server.address() as AddressInfo).port}/hook`, close: () => void server.close() };
}

function passOn(socket: Socket): void {
  const inner = connect(Number(new URL(customer.url).port), "127.0.0.1");
  inner.on("error", () => {});
  socket.pipe(inner).pipe(socket);
}

describe("a publish request", () => {
  test("is posted to the webhook as a form and allowed by 200", async () => {
    await open();
    const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
    const [asked] = customer.requests;
    expect(asked?.method).toBe("POST");
    expect(asked?.path).toBe("/hook?key=webhook-secret");
    expect(asked?.body).toBe(
      `passcode=s3cret&call=publish&name=${STREAM}&app=live&addr=203.0.113.7&clientid=${clientId}`,
    );
    expect(asked?.headers).toMatchObject({
      "content-type": "application/x-www-form-urlencoded",
      "user-agent": "headgate-webhook/1",
      "content-length": String(asked?.body.length),
    });
    expect(asked?.headers["webhook-id"]).toMatch(/^msg_/);
    expect(asked?.headers["accept-encoding"]).toBeUndefined();
    expect(await publishRow()).toMatchObject({ client_id: clientId, state: "live", arguments: "passcode=s3cret" });
    expect(await streamState()).toBe("live");
  });

  test.each(["%zz&&x=/?", Buffer.from([0xe9, 0x3d, 0xff]), ""])(
    "with odd arguments %j reaches the customer unchanged",
    async (odd) => {
      await open();
      await stage.allowed(STREAM, { arguments: odd });
      const sent = Buffer.from(odd).toString("latin1");
      expect(customer.requests[0]?.body.startsWith(sent === "" ? "call=publish&" : `${sent}&call=publish&`)).toBe(true);
    },
  );

  test("from a mapped IPv4 address is reported as IPv4", async () => {
    await open();
    await stage.request(STREAM, { address: "::ffff:203.0.113.9" });
    expect(new URLSearchParams(customer.requests[0]?.body).get("addr")).toBe("203.0.113.9");
  });

  const statuses = [
    201, 202, 204, 206, 301, 302, 303, 307, 308, 400, 401, 403, 404, 408, 410, 429, 500, 502, 503, 504, 599,
  ];

  test.each(casesOfRun(statuses, 4))("is denied by %i, and no redirect is followed", async (status) => {
    await open();
    const target = await startRedirectTarget();
    customer.answer({ status, headers: { location: target.url } });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
    expect(customer.requests).toHaveLength(1);
    expect(target.connections()).toBe(0);
    await target.close();
    await denied().toEqual(["denied"]);
    expect(await streamState()).toBe("created");
  });

  test("is denied with the first line of a 403's plain text", async () => {
    await open();
    customer.answer({
      status: 403,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "Plan\u0007 expired – call us\r\nsecret",
    });
    expect(await stage.request(STREAM)).toMatchObject({ description: "Plan expired – call us" });
    customer.answer({ status: 403, headers: { "content-type": "text/plain" }, body: "x".repeat(100_000) });
    expect(await stage.request(STREAM)).toMatchObject({ description: "x".repeat(200) });
  });

  test.each([
    { status: 403, headers: { "content-type": "text/html" }, body: "<b>no</b>" },
    { status: 403, headers: { "content-type": "text/plain", "content-encoding": "gzip" }, body: "no" },
    { status: 403, headers: { "content-type": "text/plain" }, body: "\n" },
    { status: 500, headers: { "content-type": "text/plain" }, body: "stack trace" },
  ])("is denied with our own text for %j", async (answer) => {
    await open();
    customer.answer(answer);
    expect(await stage.request(STREAM)).toMatchObject({ description: "Publish denied" });
  });

  test("is denied when the customer does not answer in time", async () => {
    await open({ settings: { deadlineMs: 300 } });
    customer.answer("hang");
    const startedAt = performance.now();
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
    expect(performance.now() - startedAt).toBeLessThan(800);
    await denied().toEqual(["denied"]);
  });

  test("is denied when the connection is not established in time, and not sent when it is established later", async () => {
    const held: Socket[] = [];
    const door = await openDoor((socket) => void held.push(socket));
    await open({ webhook: door.url, settings: { deadlineMs: 300 } });
    const startedAt = performance.now();
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
    expect(performance.now() - startedAt).toBeLessThan(800);
    for (const socket of held) passOn(socket);
    await expect.poll(() => held.every((socket) => socket.destroyed), { timeout: 3_000 }).toBe(true);
    expect(held).toHaveLength(1);
    expect(customer.requests).toHaveLength(0);
    door.close();
  });

  test("is tried once more when the connection failed before it was sent", async () => {
    let connections = 0;
    const door = await openDoor((socket) => {
      connections += 1;
      if (connections === 1) socket.resetAndDestroy();
      else passOn(socket);
    });
    await open({ webhook: door.url });
    await stage.allowed(STREAM);
    expect(connections).toBe(2);
    expect(customer.requests).toHaveLength(1);
    door.close();
  });

  test("is tried twice at most", async () => {
    let connections = 0;
    const door = await openDoor((socket) => {
      connections += 1;
      socket.resetAndDestroy();
    });
    await open({ webhook: door.url });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
    expect(connections).toBe(2);
    door.close();
  });

  test("is allowed by the status alone when the body never ends", async () => {
    await open({ settings: { deadlineMs: 1_000 } });
    customer.answer({ status: 200, body: "o", stallBody: true });
    const startedAt = performance.now();
    await stage.allowed(STREAM);
    expect(performance.now() - startedAt).toBeLessThan(900);
  });

  test("is sent once when the connection is reset after the request", async () => {
    await open();
    customer.answer("reset");
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
    expect(customer.requests).toHaveLength(1);
  });

  test("is denied when nothing listens", async () => {
    await open({ webhook: "https://127.0.0.1:1/hook" });
    expect(await stage.request(STREAM)).toMatchObject({
      command: "deny",
      description: "Publish could not be authorised",
    });
  });

  test("is denied when the customer's certificate is not trusted", async () => {
    await open({ ca: null });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
    expect(customer.requests).toHaveLength(0);
  });

  test("never reaches a private address outside of development", async () => {
    await open({ settings: { dev: false } });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
    expect(customer.connections()).toBe(0);
  });

  test("reuses the previous connection", async () => {
    await open();
    customer.answer({ status: 403, body: "no" });
    for (let count = 0; count < 5; count += 1) await stage.request(STREAM);
    expect(customer.requests).toHaveLength(5);
    expect(customer.connections()).toBe(1);
  });

  test("resumes the TLS session on a new connection", async () => {
    await open();
    customer.answer({ status: 403, headers: { connection: "close" } });
    await stage.request(STREAM);
    await stage.request(STREAM);
    expect(customer.requests.map((request) => request.tlsSessionReused)).toEqual([false, true]);
  });

  test("gets a client id of its own, also after a restart", async () => {
    await open();
    customer.answer({ status: 403 });
    for (let count = 0; count < 3; count += 1) await stage.request(STREAM);
    stage = await stage.crash();
    await stage.request(STREAM);
    const seen = customer.requests.map((request) => Number(new URLSearchParams(request.body).get("clientid")));
    expect(new Set(seen).size).toBe(4);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });
});

describe("the customer is not asked", () => {
  afterEach(() => expect(customer.calls("publish").length).toBeLessThanOrEqual(1));

  test.each([
    ["an unknown stream", "Ab1Cd-other", null],
    ["a deleted stream", "Ab1Cd-gone1", null],
    ["a locked stream", "Ab1Cd-lock1", null],
    ["a name in another case", STREAM.toLowerCase(), null],
    ["a reserved field", STREAM, "call=publish"],
    ["a name with control characters", `${STREAM}\n`, null],
    ["arguments beyond the limit", STREAM, "a".repeat(2049)],
  ])("about %s", async (_, name, custom) => {
    await open();
    await addStream(stage.db, "Ab1Cd-gone1", "deleted");
    await addStream(stage.db, "Ab1Cd-lock1", "locked");
    expect(await stage.request(name, { arguments: custom })).toMatchObject({ command: "deny", code: "bad_name" });
    expect(customer.requests).toHaveLength(0);
  });

  test.each([
    ["a disabled organisation", { enabled: 0 }],
    ["an organisation whose trial is over", { plan: "trial" as const, trial_ends_at: 1 }],
  ])("for %s", async (_, state) => {
    await open();
    await stage.db.updateTable("organisation").set(state).execute();
    expect(await stage.request(STREAM)).toMatchObject({
      command: "deny",
      code: "denied",
      description: "Organisation is not enabled",
    });
    expect(customer.requests).toHaveLength(0);
  });

  test("about a name that is live", async () => {
    await open();
    await stage.allowed(STREAM);
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "bad_name" });
  });

  test("about a name that is being decided", async () => {
    await open();
    const requests = [stage.ask(STREAM), stage.ask(STREAM), stage.ask(STREAM)];
    const answers = await Promise.all(requests.map((request) => stage.answered(request)));
    expect(answers.map((answer) => answer.command).sort()).toEqual(["allow", "deny", "deny"]);
  });

  test("without a webhook, and the publish is allowed", async () => {
    await open({ webhook: null });
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId);
    await stage.publishing.stop();
    expect(await stage.db.selectFrom("outbox").selectAll().execute()).toEqual([]);
    expect(await publishRow()).toMatchObject({ state: "ended", webhook: null });
    expect(await streamState()).toBe("ended");
  });
});

describe("a live name", () => {
  test("is replaced after five silent seconds once the customer allows the new publish", async () => {
    await open();
    const first = await stage.allowed(STREAM);
    stage.media.measure(first, { silentMs: 5_000 });
    const request = stage.ask(STREAM);
    await customer.received("publish", 2);
    await expect
      .poll(() => stage.media.commands.at(-1))
      .toMatchObject({ command: "end", clientId: first, reason: "replaced" });
    stage.end(first, "replaced");
    const answer = await stage.answered(request);
    expect(answer.command).toBe("allow");
    await customer.received("publish_done");
    expect(await streamState()).toBe("live");
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "bad_name" });
  });

  test("stays after five silent seconds when the customer denies the new publish", async () => {
    await open();
    const first = await stage.allowed(STREAM);
    stage.media.measure(first, { silentMs: 9_000 });
    customer.answer({ status: 403 });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
    expect(stage.media.commands.some((each) => each.command === "end")).toBe(false);
    stage.media.measure(first, { silentMs: 0 });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "bad_name" });
  });

  test("is replaced immediately when the deployment says so", async () => {
    await open({ settings: { duplicate: "replace" } });
    const first = await stage.allowed(STREAM);
    const request = stage.ask(STREAM);
    await expect.poll(() => stage.media.commands.at(-1)).toMatchObject({ command: "end", clientId: first });
    stage.end(first, "replaced");
    expect((await stage.answered(request)).command).toBe("allow");
  });

  test("is free again after its end and after a denial", async () => {
    await open();
    stage.end(await stage.allowed(STREAM));
    customer.answer({ status: 403 });
    expect(await stage.request(STREAM)).toMatchObject({ code: "denied" });
    customer.answer({ status: 200 });
    await stage.allowed(STREAM);
  });
});

describe("an allowed publish", () => {
  test("is pushed to the configured upstreams with its name and arguments", async () => {
    await open({ webhook: null, settings: { dev: false, upstreamPush: ["rtmp://127.0.0.1:1936/live/{name}?{args}"] } });
    const answer = await stage.request(STREAM, { arguments: "a=%2F&b=$1" });
    const url = `rtmp://127.0.0.1:1936/live/${STREAM}?a=%2F&b=$1`;
    expect(answer).toMatchObject({ command: "allow", upstreams: [{ url, source: "deployment" }] });
    const wanted = { kind: "address_wanted", clientId: 1, port: 1936, source: "deployment" } as const;
    stage.publishing.handle({ ...wanted, push: 7, host: "127.0.0.1" });
    stage.publishing.handle({ ...wanted, push: 8, host: "127.0.0.2" });
    // The operator's permission for a host does not apply to a customer's upstream there.
    stage.publishing.handle({ ...wanted, push: 9, host: "127.0.0.1", source: "stream" });
    const answers = () => stage.media.commands.filter((each) => each.command === "dial" || each.command === "forbid");
    await expect.poll(answers).toHaveLength(3);
    expect(stage.media.commands).toContainEqual({ command: "forbid", push: 9 });
    expect(stage.media.commands).toContainEqual({ command: "dial", push: 7, addresses: ["127.0.0.1"] });
    expect(stage.media.commands).toContainEqual({ command: "forbid", push: 8 });
  });

  test("is refused before the customer is asked when its arguments cannot be pushed unaltered", async () => {
    await open({ settings: { upstreamPush: ["rtmp://127.0.0.1/live/{name}?{args}"] } });
    expect(await stage.request(STREAM, { arguments: Buffer.from([0xff]) })).toMatchObject({
      command: "deny",
      code: "bad_name",
    });
    expect(customer.requests).toHaveLength(0);
  });
});

test("logs carry the client id, one line per start and end, and no secret", async () => {
  await open();
  const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
  stage.end(clientId);
  await customer.received("publish_done");
  customer.answer({ status: 500, body: "webhook-body" });
  await stage.request(STREAM, { arguments: "passcode=s3cret" });
  expect(stage.log()).toContain(`"clientId":${clientId}`);
  expect(stage.log().match(/publish started/g)).toHaveLength(1);
  expect(stage.log().match(/publish ended/g)).toHaveLength(1);
  for (const secret of ["s3cret", "webhook-secret", "webhook-body"]) expect(stage.log()).not.toContain(secret);
});
