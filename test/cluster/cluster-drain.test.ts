// What an operator sees of the nodes, and a node that accepts no new publishes while the running ones
// continue.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun } from "../support/whole-run.ts";

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
const broadcasts: Broadcast[] = [];
beforeAll(async () => {
  customer = await startCustomer();
  cluster = await startCluster({ nodes: 2, customer });
}, 180_000);
afterAll(async () => {
  for (const each of broadcasts) each.kill("SIGKILL");
  await cluster?.close();
  await customer?.close();
});

const node = (place: number): Headgate => cluster.nodes[place] as Headgate;
/** The nodes as seen by a machine that has only the configuration: here that of the second node. */
const listed = async () => JSON.parse(await node(1).command(["nodes"])) as readonly Shown[];
const readiness = async (place: number) => await (await fetch(`${node(place).metrics}/readyz`)).text();
const metricsOf = async (place: number) => await (await fetch(`${node(place).metrics}/metrics`)).text();
const sessions = async (place: number) =>
  (await node(place).call("GET", "/session")) as unknown as readonly { readonly streamname: string }[];

function publish(place: number, name: string): Broadcast {
  const each = broadcast(`${node(place).rtmp}/${name}`, { seconds: 600, size: "160x90" });
  broadcasts.push(each);
  return each;
}

async function offer(place: number, name: string): Promise<Response> {
  const headers = { "content-type": "application/sdp", connection: "close" };
  return await fetch(node(place).whip(name), { method: "POST", headers, body: OFFER });
}

test("every node is listed with its state and load", async () => {
  const name = await node(0).newStream();
  publish(0, name);
  const nodes = await until("a says that it has a publish", async () => {
    const shown = await listed();
    return shown[0]?.publishes === 1 && shown;
  });
  const { http, rtmp } = node(1);
  const row = { state: "up", version: expect.stringMatching(/^\d/), started_at: expect.stringMatching(/Z$/) };
  expect(nodes).toMatchObject([
    { ...row, name: "a", epoch: 1, publishes: 1, http: node(0).http, rtmp: node(0).rtmp },
    { ...row, name: "b", epoch: 2, publishes: 0, http, rtmp },
  ]);
  for (const { last_sign_of_life_age_ms: age } of nodes) {
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(10_000);
  }
}, 60_000);

test("metrics contain the node's name, the number of nodes, and the age of its heartbeat", async () => {
  expect(await (await fetch(`${node(0).metrics}/healthz`)).text()).toBe("ok, node a\n");
  const metrics = await metricsOf(0);
  expect(metrics).toMatch(/^headgate_node_info\{name="a",epoch="1",version="\d[^"]*"\} 1$/m);
  expect(metrics).toContain('headgate_nodes{state="up"} 2\n');
  expect(metrics).toContain('headgate_nodes{state="draining"} 0\n');
  expect(metrics).toContain("headgate_node_takeovers_total 0\n");
  const [, age] = /^headgate_node_sign_of_life_age_seconds (.+)$/m.exec(metrics) ?? [];
  expect(Number(age)).toBeGreaterThanOrEqual(0);
  expect(Number(age)).toBeLessThan(10);
});

test("an operator sees every node whichever one answers, and which one answered", async () => {
  const { cluster: nodes } = (await node(1).call("GET", "/deployment")) as { cluster: unknown };
  const row = { state: "up", load: expect.any(Number), last_sign_of_life_at: expect.stringMatching(/Z$/) };
  expect(nodes).toMatchObject([
    { ...row, name: "a", answered: false, publishes: 1, rtmp: node(0).rtmp },
    { ...row, name: "b", answered: true, publishes: 0, rtmp: node(1).rtmp },
  ]);
});

test("a draining node refuses new publishes, and the running ones continue, until it accepts new ones again", async () => {
  const [running = { streamname: "" }] = await sessions(0);
  await node(1).command(["nodes", "drain", "a"]);
  await until("it drains", async () => (await readiness(0)) === "not ready: draining\n", NOTICED_LIMIT_MS);
  expect((await listed()).map(({ name, state }) => [name, state])).toEqual([
    ["a", "draining"],
    ["b", "up"],
  ]);
  expect(await readiness(1)).toBe("ready\n");

  const name = await node(0).newStream();
  const encoder = publish(0, name);
  await encoder.exit;
  expect(encoder.stderr()).toContain("is not accepting new publishes");
  expect((await sessions(0)).map(({ streamname }) => streamname)).toEqual([running.streamname]);

  // If another node had room the offer would go there.
  await node(1).command(["nodes", "drain", "b"]);
  await until("both drain", async () => (await readiness(1)) === "not ready: draining\n", NOTICED_LIMIT_MS);
  const seen = async () => /^headgate_nodes\{state="draining"\} 2$/m.test(await metricsOf(0));
  await until("a knows that b drains", seen, NOTICED_LIMIT_MS);
  const refused = await offer(0, name);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
  expect(await refused.json()).toMatchObject({
    code: "stopping",
    detail: expect.stringContaining("not accepting new publishes"),
  });

  for (const each of ["a", "b"]) await node(1).command(["nodes", "undrain", each]);
  for (const place of [0, 1])
    await until("it accepts publishes", async () => (await readiness(place)) === "ready\n", NOTICED_LIMIT_MS);
  expect((await offer(0, name)).status).toBe(201);
}, 120_000);

inWholeRun(
  "a node that is drained and restarted accepts publishes",
  async () => {
    await node(1).command(["nodes", "drain", "a"]);
    await until("it drains", async () => (await readiness(0)) === "not ready: draining\n", NOTICED_LIMIT_MS);
    await node(0).stop();
    expect((await listed()).map(({ name, state, publishes }) => [name, state, publishes])).toEqual([
      ["a", "stopped", 0],
      ["b", "up", 0],
    ]);
    await cluster.restart(0);
    expect(await readiness(0)).toBe("ready\n");
    // b noticed that a left.
    const takenOver = async () => /takeovers_total [1-9]/.test(await metricsOf(1));
    await until("b has checked what a left behind", takenOver, NOTICED_LIMIT_MS);
  },
  120_000,
);

test("draining an unknown node is refused with a list of the running ones", async () => {
  await expect(node(0).command(["nodes", "drain", "nobody"])).rejects.toThrow(
    /nobody is not running here:\n.* a {2}up/,
  );
  await expect(node(0).command(["nodes", "drain"])).rejects.toThrow("the node's name is missing");
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
