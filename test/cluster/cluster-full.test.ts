// A node without room among others: offers to it go to a node with room, once, and operators see that it is
// full. And the limits of an organisation, counted over all nodes.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun, isWholeRun } from "../support/whole-run.ts";

const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");
/** Three heartbeats, and slack for a busy machine. */
const NOTICED_LIMIT_MS = 6_000 + 24_000;

/** One is full; the others have room. */
const NODES = isWholeRun ? 3 : 2;
const OTHERS = ["b", "c"].slice(0, NODES - 1);

let customer: Customer;
let cluster: Cluster;
const broadcasts: Broadcast[] = [];
beforeAll(async () => {
  customer = await startCustomer();
  // No process fits into a megabyte: the first node is full as long as it runs.
  const envOf = (place: number): Record<string, string> =>
    place === 0 ? { HEADGATE_LIMITS_MEMORY_MB: "1" } : { HEADGATE_LIMITS_LOAD_PERCENT: "0" };
  cluster = await startCluster({ nodes: NODES, customer, envOf });
}, 240_000);
afterAll(async () => {
  for (const each of broadcasts) each.kill("SIGKILL");
  await cluster?.close();
  await customer?.close();
});

const node = (place: number) => cluster.nodes[place] as Headgate;
const readiness = async (place: number) => await (await fetch(`${node(place).metrics}/readyz`)).text();

async function offer(url: string): Promise<Response> {
  const headers = { "content-type": "application/sdp", connection: "close" };
  return await fetch(url, { method: "POST", headers, body: OFFER, redirect: "manual" });
}

function send(place: number, name: string): Broadcast {
  const each = broadcast(`${node(place).rtmp}/${name}`, { seconds: 600, size: "160x90" });
  broadcasts.push(each);
  return each;
}

test("a full node reports it to load balancers, to its operator and to the other nodes", async () => {
  await until("it is full", async () => /^not ready: full: \d+ of 1 MB of memory /.test(await readiness(0)));
  expect(await readiness(1)).toBe("ready\n");
  const full = expect.stringMatching(/^full: \d+ of 1 MB of memory are used$/);
  const shown = async () => JSON.parse(await node(1).command(["nodes"])) as { name: string; full: string | null }[];
  const nodesOf = async () =>
    ((await node(1).call("GET", "/deployment")) as { cluster: { full: string | null }[] }).cluster;
  await until("the others know it", async () => (await nodesOf())[0]?.full !== null, NOTICED_LIMIT_MS);
  expect(await shown()).toMatchObject([
    { name: "a", state: "up", full },
    ...OTHERS.map((name) => ({ name, full: null })),
  ]);
  expect(await nodesOf()).toMatchObject([{ name: "a", full }, ...OTHERS.map(() => ({ full: null }))]);
}, 120_000);

test("an offer to a full node is sent to one with room, and only once", async () => {
  const { id, ingest } = (await node(1).call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const name = ingest.rtmp.streamname;
  // It reads the nodes every two seconds: until then it may not know the others, or where they are.
  const other = await node(1).newStream();
  const knowsThem = async () => (await offer(node(0).whip(other))).status === 307;
  await until("it knows the others", knowsThem, NOTICED_LIMIT_MS);
  const sent = await offer(node(0).whip(name));
  const location = sent.headers.get("location") ?? "";
  expect(sent.status).toBe(307);
  expect(cluster.nodes.slice(1).map(({ http }) => http)).toContain(new URL(location).origin);
  const taken = await offer(location);
  expect(taken.status).toBe(201);
  expect((await fetch(taken.headers.get("location") ?? "", { method: "DELETE" })).status).toBe(200);
  const again = await offer(`${node(0).whip(name)}&${new URL(location).search.split("&").at(-1)}`);
  expect([again.status, again.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d$/)]);
  expect(await again.json()).toMatchObject({ code: "full" });
  // What another node took was not refused.
  const rows = await until("its row", async () => {
    const found = (await node(1).call("GET", `/refusal?stream=${id}`)) as unknown as readonly unknown[];
    return found.length > 0 && found;
  });
  expect(rows).toMatchObject([{ reason: "full", protocol: "whip", count: 1 }]);
}, 60_000);

test("an encoder that cannot be redirected is told why it is refused", async () => {
  const refused = send(0, await node(1).newStream());
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toContain("This server is full; try again in a moment");
}, 60_000);

inWholeRun(
  "a Headgate that pushes to a full node goes on to one with room, which alone asks the customer",
  async () => {
    const name = await node(1).newStream();
    const pushing = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: `${node(0).rtmp}/${name}?passcode=one` } });
    try {
      const encoder = broadcast(`${pushing.rtmp}/${await pushing.newStream()}`, { seconds: 600, size: "160x90" });
      broadcasts.push(encoder);
      await until("it is live", async () => {
        const sessions = (await node(1).call("GET", "/session")) as unknown as readonly Record<string, unknown>[];
        return sessions.some(({ streamname, bytes_in }) => streamname === name && Number(bytes_in) > 0);
      });
      const places = await cluster.query(
        `select node.name from publish join node on node.epoch = publish.epoch where publish.name = '${name}'`,
      );
      expect([[{ name: "b" }], [{ name: "c" }]]).toContainEqual(places);
      const asked = customer.calls("publish").filter(({ body }) => body.includes(name));
      expect(asked.map(({ body }) => new URLSearchParams(body).get("passcode"))).toEqual(["one"]);
      encoder.kill("SIGKILL");
    } finally {
      await pushing.stop();
    }
  },
  120_000,
);

inWholeRun(
  "streams of an organisation are counted over all nodes",
  async () => {
    const organisation = (await node(1).call("GET", "/organisation")) as { hash: string };
    await node(1).command(["organisation", "limit", organisation.hash, "--streams", "2"]);
    expect(await node(2).call("GET", "/organisation")).toMatchObject({ limits: { streams: 2, ingest_kbps: 0 } });
    for (const place of [1, 2]) send(place, await node(1).newStream());
    await until("two are live", async () => {
      const live = await cluster.query("select 1 from publish where state = 'live'");
      return live.length === 2;
    });
    for (const place of [1, 2]) {
      const refused = send(place, await node(1).newStream());
      expect(await refused.exit).not.toBe(0);
      expect(refused.stderr()).toContain("This organisation has reached its limit of live streams");
    }
    await node(1).command(["organisation", "limit", organisation.hash, "--streams", "default"]);
    const before = customer.calls("publish").length;
    send(2, await node(1).newStream());
    await until("the next one is accepted", () => customer.calls("publish").length === before + 1);
  },
  120_000,
);
