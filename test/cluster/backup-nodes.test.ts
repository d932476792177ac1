// A publish and its backup on a service of several nodes: both run on the same node, to which every other
// node forwards a switch.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import type { Headgate } from "../support/headgate.ts";

interface PairSession {
  readonly client_id: number;
  readonly streamname: string;
  readonly backup: boolean;
  readonly on_air: boolean;
  readonly bytes_in: number;
}

let customer: Customer;
let cluster: Cluster;
let broadcasts: Broadcast[] = [];
beforeAll(async () => {
  customer = await startCustomer();
  cluster = await startCluster({ nodes: 2, customer });
}, 180_000);
afterEach(() => {
  for (const each of broadcasts) each.kill("SIGKILL");
  broadcasts = [];
});
afterAll(async () => {
  await cluster?.close();
  await customer?.close();
});

const [a, b] = [() => cluster.nodes[0] as Headgate, () => cluster.nodes[1] as Headgate];

function send(node: Headgate, name: string): Broadcast {
  const each = broadcast(`${node.rtmp}/${name}`, { seconds: 600, size: "160x90", gop: 25 });
  broadcasts.push(each);
  return each;
}

const liveOf = (name: string, backup: boolean) =>
  until(`${backup ? "backup" : "publish"} of ${name}`, async () => {
    const all = (await b().call("GET", "/session")) as unknown as PairSession[];
    return all.find((of) => of.streamname === name && of.backup === backup && of.bytes_in > 0);
  });

test("a backup on another node is refused with the reason, and one on the stream's own node can be switched to from any node", {
  timeout: 180_000,
}, async () => {
  const stream = (await a().call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  const name = stream.ingest.rtmp.streamname;
  send(a(), name);
  const main = await liveOf(name, false);
  const refused = send(b(), `${name}?backup=1`);
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toContain("live on another server of the service: publish its backup there");
  expect(customer.calls("publish").filter(({ body }) => body.includes(name))).toHaveLength(1);
  send(a(), `${name}?backup=1`);
  const backup = await liveOf(name, true);
  expect([main.on_air, backup.on_air]).toEqual([true, false]);
  const switched = await until("the backup is on air", async () => {
    const answer = await b().call("PUT", `/stream/${stream.id}/switch`, { to: backup.client_id });
    return answer.on_air === true ? answer : null;
  });
  expect(switched).toEqual({ client_id: backup.client_id, on_air: true });
  const [now, then] = [await liveOf(name, false), await liveOf(name, true)];
  expect([now.on_air, then.on_air]).toEqual([false, true]);
});
