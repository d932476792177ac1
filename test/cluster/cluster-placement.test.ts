// What an operator sees of the nodes, and a node that accepts no new publishes while the running ones continue. WHIP and
// names over several nodes: a session through another node, a name that is live on another node, and
// where an offer goes that its node does not accept.
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { providePython } from "../../scripts/python.mjs";
import { start, until } from "../support/child.ts";
import { type Broadcaster, type Chromium, startChromium } from "../support/chromium.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun, isWholeRun } from "../support/whole-run.ts";

const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");

/** Two heartbeats, and slack for a busy machine. */
const NOTICED_LIMIT_MS = 4_000 + 16_000;

interface Shown {
  readonly name: string;
  readonly state: string | null;
  readonly epoch: number;
  readonly publishes: number;
  readonly load: number | null;
  readonly last_sign_of_life_age_ms: number | null;
}

let customer: Customer;
let cluster: Cluster;
/** In the whole run; otherwise its offer is sent without it. */
let chromium: Chromium | null = null;
/** Alone on its store; started by the first test that needs it. */
let pushing: Headgate | null = null;
let broadcasts: Broadcast[] = [];
let lasting: Broadcast | null = null;
beforeAll(async () => {
  [customer, chromium] = await Promise.all([startCustomer(), isWholeRun ? startChromium() : null]);
  const env = { HEADGATE_DRAIN_S: "120" };
  cluster = await startCluster({ nodes: 2, customer, env });
}, 180_000);
afterEach(() => {
  for (const each of broadcasts) each.kill("SIGKILL");
  broadcasts = [];
});
afterAll(async () => {
  await chromium?.close();
  lasting?.kill("SIGKILL");
  await pushing?.stop();
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

const sessions = async (node: Headgate) =>
  (await node.call("GET", "/session")) as unknown as readonly {
    readonly streamname: string;
    readonly bytes_in: number;
  }[];
const isListed = async (name: string) => (await sessions(b())).some((of) => of.streamname === name);
const isLive = async (name: string) => (await sessions(b())).some((of) => of.streamname === name && of.bytes_in > 0);

/** What the command for it records, without the start of a program. */
const marked = (name: string, state: "draining" | "up") =>
  cluster.query(`update node set state = '${state}' where name = '${name}' and state in ('up', 'draining')`);

/** The nodes as seen by a machine that has only the configuration: here that of the second node. */
const listed = async () => JSON.parse(await b().command(["nodes"])) as readonly Shown[];
const metricsOf = async (node: Headgate) => await (await fetch(`${node.metrics}/metrics`)).text();

/** A publish that continues after its test. */
function publishing(node: Headgate, name: string): Broadcast {
  return broadcast(`${node.rtmp}/${name}`, { seconds: 600, size: "160x90" });
}

async function offer(node: Headgate, name: string): Promise<Response> {
  const headers = { "content-type": "application/sdp", connection: "close" };
  return await fetch(node.whip(name), { method: "POST", headers, body: OFFER });
}

test("every node is listed with its state and load", async () => {
  const name = await a().newStream();
  lasting = publishing(a(), name);
  await until("a says that it has a publish", async () => {
    const { cluster: all } = (await b().call("GET", "/deployment")) as { cluster: readonly { publishes: number }[] };
    return all[0]?.publishes === 1;
  });
  const nodes = await listed();
  const { http, rtmp } = b();
  const row = { state: "up", version: expect.stringMatching(/^\d/), started_at: expect.stringMatching(/Z$/) };
  expect(nodes).toMatchObject([
    { ...row, name: "a", epoch: 1, publishes: 1, http: a().http, rtmp: a().rtmp },
    { ...row, name: "b", epoch: 2, publishes: 0, http, rtmp },
  ]);
  for (const { last_sign_of_life_age_ms: age } of nodes) {
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(10_000);
  }
}, 60_000);

test("metrics contain the node's name, the number of nodes, and the age of its heartbeat", async () => {
  expect(await (await fetch(`${a().metrics}/healthz`)).text()).toBe("ok, node a\n");
  const metrics = await metricsOf(a());
  expect(metrics).toMatch(/^headgate_node_info\{name="a",epoch="1",version="\d[^"]*"\} 1$/m);
  expect(metrics).toContain('headgate_nodes{state="up"} 2\n');
  expect(metrics).toContain('headgate_nodes{state="draining"} 0\n');
  expect(metrics).toContain("headgate_node_takeovers_total 0\n");
  const [, age] = /^headgate_node_sign_of_life_age_seconds (.+)$/m.exec(metrics) ?? [];
  expect(Number(age)).toBeGreaterThanOrEqual(0);
  expect(Number(age)).toBeLessThan(10);
});

test("an operator sees every node whichever one answers, and which one answered", async () => {
  const { cluster: nodes } = (await b().call("GET", "/deployment")) as { cluster: unknown };
  const row = { state: "up", load: expect.any(Number), last_sign_of_life_at: expect.stringMatching(/Z$/) };
  expect(nodes).toMatchObject([
    { ...row, name: "a", answered: false, publishes: 1, rtmp: a().rtmp },
    { ...row, name: "b", answered: true, publishes: 0, rtmp: b().rtmp },
  ]);
});

test("a draining node refuses new publishes, and the running ones continue, until it accepts new ones again", async () => {
  const [running = { streamname: "" }] = await sessions(a());
  await b().command(["nodes", "drain", "a"]);
  await until("it drains", async () => (await readiness(a())) === "not ready: draining\n", NOTICED_LIMIT_MS);
  expect((await listed()).map(({ name, state }) => [name, state])).toEqual([
    ["a", "draining"],
    ["b", "up"],
  ]);
  expect(await readiness(b())).toBe("ready\n");

  const name = await a().newStream();
  const encoder = send(a(), name);
  await encoder.exit;
  expect(encoder.stderr()).toContain("is not accepting new publishes");
  expect((await sessions(a())).map(({ streamname }) => streamname)).toEqual([running.streamname]);

  // If another node had room the offer would go there.
  await marked("b", "draining");
  await until("both drain", async () => (await readiness(b())) === "not ready: draining\n", NOTICED_LIMIT_MS);
  const seen = async () => /^headgate_nodes\{state="draining"\} 2$/m.test(await metricsOf(a()));
  await until("a knows that b drains", seen, NOTICED_LIMIT_MS);
  const refused = await offer(a(), name);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
  expect(await refused.json()).toMatchObject({
    code: "stopping",
    detail: expect.stringContaining("not accepting new publishes"),
  });

  await b().command(["nodes", "undrain", "a"]);
  await marked("b", "up");
  for (const place of [a(), b()])
    await until("it accepts publishes", async () => (await readiness(place)) === "ready\n", NOTICED_LIMIT_MS);
  const taken = await offer(a(), name);
  expect(taken.status).toBe(201);
  expect((await fetch(taken.headers.get("location") ?? "", { method: "DELETE" })).status).toBe(200);
  lasting?.kill("SIGKILL");
}, 120_000);

inWholeRun(
  "a node that is drained and restarted accepts publishes",
  async () => {
    await b().command(["nodes", "drain", "a"]);
    await until("it drains", async () => (await readiness(a())) === "not ready: draining\n", NOTICED_LIMIT_MS);
    await a().stop();
    expect((await listed()).map(({ name, state, publishes }) => [name, state, publishes])).toEqual([
      ["a", "stopped", 0],
      ["b", "up", 0],
    ]);
    await cluster.restart(0);
    expect(await readiness(a())).toBe("ready\n");
    // b noticed that a left.
    const takenOver = async () => /takeovers_total [1-9]/.test(await metricsOf(b()));
    await until("b has checked what a left behind", takenOver, NOTICED_LIMIT_MS);
  },
  120_000,
);

test("draining an unknown node is refused with a list of the running ones", async () => {
  await expect(a().command(["nodes", "drain", "nobody"])).rejects.toThrow(/nobody is not running here:\n.* a {2}up/);
  await expect(a().command(["nodes", "drain"])).rejects.toThrow("the node's name is missing");
}, 60_000);

inWholeRun(
  "the embedded store has one node, which cannot be drained",
  async () => {
    const alone = await startHeadgate({ env: { HEADGATE_NODE_NAME: "alone" } });
    try {
      const unknown = { state: null, load: null, last_sign_of_life_age_ms: null };
      expect(JSON.parse(await alone.command(["nodes"]))).toMatchObject([{ name: "alone", publishes: 0, ...unknown }]);
      await expect(alone.command(["nodes", "drain", "alone"])).rejects.toThrow("has only one node");
      const metrics = await (await fetch(`${alone.metrics}/metrics`)).text();
      expect(metrics).toContain('headgate_nodes{state="up"} 1\n');
      expect(metrics).not.toContain("sign_of_life");
    } finally {
      await alone.stop();
    }
  },
  60_000,
);

test("a browser's session is patched, sent metadata, and ended through a node that does not run it", async () => {
  const name = await a().newStream();
  const page = await chromium?.open(a().whip(name));
  const session = page === undefined ? await sessionOf(a().whip(name)) : ((await page.start()).session ?? "");
  await until("it is live", () => (page === undefined ? isListed(name) : isLive(name)));
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
  await page?.page.close();
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
  await until("another is allowed", isAllowed, 30_000, 500); // each time an encoder is started
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
  await marked("a", "draining");
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
  await marked("a", "up");
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
  const page = await chromium?.open(a().whip(redirected));
  const taken = page === undefined ? await sessionOf(a().whip(redirected)) : null;
  if (page !== undefined) expect(await page.start()).toMatchObject({ status: 201 });
  await until("it is live", () => (page === undefined ? isListed(redirected) : isLive(redirected)));
  expect(await nodesOf(redirected)).toEqual([{ name: "b" }]);
  const { status, headers } = await fetch(a().whip(redirected), {
    ...{ method: "POST", redirect: "manual", headers: { "content-type": "application/sdp" } },
    body: page === undefined ? OFFER : await offerOf(page),
  });
  const there = `${a().whip(redirected).replace(a().http, b().http)}&headgate-sent-on=1`;
  expect([status, headers.get("location")]).toEqual([307, there]);
  const passed = await fetch(`${a().http}/p/webrtc?stream_url=${encodeURIComponent(b().rtmp)}`, {
    method: "POST",
    headers: { "content-type": "application/sdp", authorization: `Bearer ${token}` },
    body: page === undefined ? OFFER : await offerOf(page),
  });
  expect(passed.status).toBe(201);
  expect((await fetch(passed.headers.get("location") ?? "", { method: "DELETE" })).status).toBe(200);
  if (taken !== null) expect((await fetch(taken, { method: "DELETE" })).status).toBe(200);
  await page?.stop();
  await page?.page.close();
  const pushed = await b().newStream();
  await pushedTo(`${a().rtmp}/${pushed}`, async () => {
    await until("it is live", () => isLive(pushed), 60_000);
    expect(await nodesOf(pushed)).toEqual([{ name: "b" }]);
  });
}, 180_000);

/** While another Headgate, alone on its store, pushes to `url`. */
async function pushedTo(url: string, meanwhile: () => Promise<void>): Promise<void> {
  pushing ??= await startHeadgate();
  const { id, ingest } = (await pushing.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  await pushing.call("POST", `/stream/${id}/upstream`, { url });
  const each = send(pushing, ingest.rtmp.streamname);
  await meanwhile();
  each.kill("SIGKILL");
}

async function newToken(node: Headgate): Promise<{ readonly token: string; readonly name: string }> {
  const name = await node.newStream();
  const { data } = await node.call("POST", "/webcaster", { streamname: name, ingesturl: node.rtmp });
  return { token: (data as { token: string }).token, name };
}

/** Sends the offer of a browser, which follows redirects; returns the URL of the session. */
async function sessionOf(url: string): Promise<string> {
  const headers = { "content-type": "application/sdp" };
  const answer = await fetch(url, { method: "POST", headers, body: OFFER });
  expect(answer.status).toBe(201);
  return new URL(answer.headers.get("location") ?? "", answer.url).href;
}

/** The offer of a browser that has nothing to send yet. */
async function offerOf({ page }: Broadcaster): Promise<string> {
  return (await page.evaluate(`(async () => {
    const connection = new RTCPeerConnection();
    connection.addTransceiver("video", { direction: "sendonly" });
    return (await connection.createOffer()).sdp;
  })()`)) as string;
}
