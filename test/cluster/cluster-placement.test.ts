// WHIP and names over several nodes: a session through another node, a name that is live on another node, and
// where an offer goes that its node does not accept.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { providePython } from "../../scripts/python.mjs";
import { start, until } from "../support/child.ts";
import { type Broadcaster, type Chromium, startChromium } from "../support/chromium.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun } from "../support/whole-run.ts";

let customer: Customer;
let cluster: Cluster;
let chromium: Chromium;
let broadcasts: Broadcast[] = [];
beforeAll(async () => {
  [customer, chromium] = await Promise.all([startCustomer(), startChromium()]);
  const env = { HEADGATE_DRAIN_S: "120" };
  cluster = await startCluster({ nodes: 2, customer, env });
}, 180_000);
afterEach(() => {
  for (const each of broadcasts) each.kill("SIGKILL");
  broadcasts = [];
});
afterAll(async () => {
  await chromium?.close();
  await cluster?.close();
  await customer?.close();
});

const [a, b] = [() => cluster.nodes[0] as Headgate, () => cluster.nodes[1] as Headgate];
const callsOf = (call: string, name: string) => customer.calls(call).filter(({ body }) => body.includes(name));

function send(node: Headgate, name: string): Broadcast {
  const each = broadcast(`${node.rtmp}/${name}`, { seconds: 600, size: "160x90" });
  broadcasts.push(each);
  return each;
}

/** The nodes that accepted publishes of a name. */
const nodesOf = async (name: string) =>
  await cluster.query(
    `select node.name from publish join node on node.epoch = publish.epoch where publish.name = '${name}'`,
  );

const readiness = async (node: Headgate) => await (await fetch(`${node.metrics}/readyz`)).text();

async function isLive(name: string): Promise<boolean> {
  const sessions = (await b().call("GET", "/session")) as unknown as { streamname: string; bytes_in: number }[];
  return sessions.some((of) => of.streamname === name && of.bytes_in > 0);
}

test("a browser's session is patched, sent metadata, and ended through a node that does not run it", async () => {
  const name = await a().newStream();
  const page = await chromium.open(a().whip(name));
  const { session = "" } = await page.start();
  await until("it is live", () => isLive(name));
  const there = session.replace(a().http, b().http);
  expect(there).not.toBe(session);
  const payload = JSON.stringify({ handlerName: "onMetaData", payload: { title: "one" } });
  const headers = { "content-type": "application/json" };
  expect((await fetch(`${there}/metadata`, { method: "POST", headers, body: payload })).status).toBe(200);
  const fragment = { method: "PATCH", headers: { "content-type": "application/trickle-ice-sdpfrag" }, body: "a=x\r\n" };
  expect((await fetch(there, fragment)).status).toBe(400); // the body is not a fragment: a node without the session would answer 404
  expect((await fetch(there, { method: "DELETE" })).status).toBe(200);
  await until("its end", () => callsOf("publish_done", name).length === 1);
  expect((await fetch(there, { method: "DELETE" })).status).toBe(410);
  await page.page.close();
});

test("a name that is live on another node is refused without calling the webhook, and replaced once it is silent", async () => {
  const name = await a().newStream();
  const first = send(a(), name);
  await until("it is live", () => isLive(name));
  const second = send(b(), name);
  expect(await second.exit).not.toBe(0);
  expect(callsOf("publish", name)).toHaveLength(1);
  first.kill("SIGSTOP");
  // Five seconds of silence (W20).
  const isAllowed = async () => {
    const asked = until("the customer is asked", () => callsOf("publish", name).length === 2);
    await Promise.race([send(b(), name).exit, asked]);
    return callsOf("publish", name).length === 2;
  };
  await until("another is allowed", isAllowed);
  await until("the first has ended", () => callsOf("publish_done", name).length === 1);
  await until("the second is live", () => isLive(name));
  const rows = await cluster.query(`select state, end_reason from publish where name = '${name}' order by client_id`);
  expect(rows).toEqual([
    { state: "ended", end_reason: "replaced" },
    { state: "live", end_reason: null },
  ]);
  first.kill("SIGKILL");
}, 90_000);

test("of two nodes that are asked for one name at the same moment, one gets it", async () => {
  const name = await a().newStream();
  customer.answer({ status: 200, afterMs: 300 }); // both nodes ask meanwhile
  const both = [send(a(), name), send(b(), name)];
  const ended = await Promise.race(both.map(async (each, at) => [at, await each.exit] as const));
  customer.answer({ status: 200 });
  expect(ended[1]).not.toBe(0);
  await until("the other is live", () => isLive(name));
  const states = await cluster.query<{ state: string }>(`select state from publish where name = '${name}'`);
  expect(states.filter(({ state }) => state === "live")).toHaveLength(1);
  expect(callsOf("publish_done", name).length).toBe(callsOf("publish", name).length - 1);
});

inWholeRun(
  "aiortc follows the redirect of a draining node with the same offer, and its media arrives at the other node",
  async () => {
    const name = await a().newStream();
    await b().command(["nodes", "drain", "a"]);
    await until("it drains", async () => (await readiness(a())) === "not ready: draining\n");
    const publisher = start(providePython(), ["test/fixtures/aiortc-whip.py", a().whip(name), "5", "160x90"]);
    await until("it is live", () => isLive(name), 60_000).catch((error: Error) => {
      throw new Error(`${error.message}: ${publisher.stderr()}`);
    });
    expect(publisher.stdout()).toMatch(new RegExp(`^${b().http}/`));
    expect(await nodesOf(name)).toEqual([{ name: "b" }]);
    expect([await publisher.exit, publisher.stderr()]).toEqual([0, expect.anything()]);
    await until("its end", () => callsOf("publish_done", name).length === 1);
    expect(callsOf("publish", name)).toHaveLength(1);
    await b().command(["nodes", "undrain", "a"]);
    await until("it accepts publishes", async () => (await readiness(a())) === "ready\n");
  },
  180_000,
);

test("a Headgate that pushes to a draining node is redirected to another, and ffmpeg is told why it is refused", async () => {
  const name = await a().newStream();
  await b().command(["nodes", "drain", "a"]);
  await until("it drains", async () => (await readiness(a())) === "not ready: draining\n");
  const refused = send(a(), name);
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toContain("is not accepting new publishes");
  await pushedTo(`${a().rtmp}/${name}?passcode=one`, async () => {
    await until("it is live", () => isLive(name), 60_000);
    expect(await nodesOf(name)).toEqual([{ name: "b" }]);
    const [{ body } = { body: "" }, ...more] = callsOf("publish", name);
    expect(more).toEqual([]);
    const { app, passcode } = Object.fromEntries(new URLSearchParams(body));
    expect({ app, passcode }).toEqual({ app: "live", passcode: "one" }); // nothing about the redirect
  });
  await b().command(["nodes", "undrain", "a"]);
  await until("it accepts publishes", async () => (await readiness(a())) === "ready\n");
}, 180_000);

test("a stopping node sends offers elsewhere, by redirect or forwarded with credentials, and redirects pushes of a Headgate", async () => {
  // A publish runs there, so that it drains for a while.
  const kept = await a().newStream();
  send(a(), kept);
  await until("it is live", () => isLive(kept));
  a().process.kill("SIGTERM");
  const { token, name } = await newToken(b());
  await until("it drains", async () => {
    const { status } = await fetch(a().whip(name), { method: "POST", redirect: "manual", body: "x" });
    return status !== 201;
  });
  const redirected = await b().newStream();
  const page = await chromium.open(a().whip(redirected));
  expect(await page.start()).toMatchObject({ status: 201 });
  await until("it is live", () => isLive(redirected));
  const { status, headers } = await fetch(a().whip(redirected), {
    ...{ method: "POST", redirect: "manual", headers: { "content-type": "application/sdp" } },
    body: await offerOf(page),
  });
  const there = `${a().whip(redirected).replace(a().http, b().http)}&headgate-sent-on=1`;
  expect([status, headers.get("location")]).toEqual([307, there]);
  const passed = await fetch(`${a().http}/p/webrtc?stream_url=${encodeURIComponent(b().rtmp)}`, {
    method: "POST",
    headers: { "content-type": "application/sdp", authorization: `Bearer ${token}` },
    body: await offerOf(page),
  });
  expect(passed.status).toBe(201);
  expect((await fetch(passed.headers.get("location") ?? "", { method: "DELETE" })).status).toBe(200);
  await page.stop();
  await page.page.close();
  const pushed = await b().newStream();
  await pushedTo(`${a().rtmp}/${pushed}`, async () => {
    await until("it is live", () => isLive(pushed), 60_000);
    expect(await nodesOf(pushed)).toEqual([{ name: "b" }]);
  });
}, 180_000);

/** While another Headgate, alone on its store, pushes to `url`. */
async function pushedTo(url: string, meanwhile: () => Promise<void>): Promise<void> {
  const pushing = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: url } });
  try {
    send(pushing, await pushing.newStream());
    await meanwhile();
  } finally {
    await pushing.stop();
  }
}

async function newToken(node: Headgate): Promise<{ readonly token: string; readonly name: string }> {
  const name = await node.newStream();
  const { data } = await node.call("POST", "/webcaster", { streamname: name, ingesturl: node.rtmp });
  return { token: (data as { token: string }).token, name };
}

/** The offer of a browser that has nothing to send yet. */
async function offerOf({ page }: Broadcaster): Promise<string> {
  return (await page.evaluate(`(async () => {
    const connection = new RTCPeerConnection();
    connection.addTransceiver("video", { direction: "sendonly" });
    return (await connection.createOffer()).sdp;
  })()`)) as string;
}
