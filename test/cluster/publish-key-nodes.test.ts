// The publish key on two nodes: the same key everywhere, and a renewal that counts at once on every node.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { addOrganisation } from "../../ts/organisation/organisations.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { until } from "../support/publishing.ts";
import { databasesWithTables } from "../support/stores.ts";
import { type Node, type Nodes, openNodes } from "../support/two-nodes.ts";

let server: PostgresServer;
let newDatabase: () => Promise<string>;
let nodes: Nodes;
let one: Node;
let other: Node;
let key: string;
let requests = 0;

beforeAll(async () => {
  server = await startPostgres();
  newDatabase = await databasesWithTables(server);
});
afterAll(() => server.close());
beforeEach(async () => {
  nodes = await openNodes(await newDatabase());
  [one, other] = [await nodes.add(), await nodes.add()];
  const now = nodes.clock.ms;
  const organisation = await addOrganisation(one.db, "Org", now);
  ({ key } = await addApiKey(one.db, { organisationId: organisation.id, role: "administrator", now }));
});
afterEach(() => nodes.close());

interface Stream {
  readonly id: string;
  readonly ingest: { readonly key: string; readonly rtmp: { readonly streamname: string } };
}
const call = async (node: Node, method: string, path: string, body?: object) => {
  const answer = await node.call(method, path, { key, ...(body && { body }) });
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.body as Stream;
};

/** The command by which the node answers a publish request. */
async function publish(node: Node, { ingest }: Stream, given: string) {
  requests += 1;
  const request = requests;
  node.service.publishing.handle({
    ...{ kind: "publish_requested", request, app: "live", name: Buffer.from(ingest.rtmp.streamname) },
    ...{ arguments: Buffer.from(`key=${given}`), address: "203.0.113.7" },
  });
  return (await until(() => node.media.commands.find((each) => "request" in each && each.request === request))).command;
}

test("both nodes show and accept the same key", async () => {
  const stream = await call(one, "POST", "/stream", { publish_key: true });
  expect((await call(other, "GET", `/stream/${stream.id}`)).ingest.key).toBe(stream.ingest.key);
  expect(await publish(other, stream, stream.ingest.key)).toBe("allow");
});

test("a renewal on one node is in force on the other from its answer on, for publishes that begin", async () => {
  const stream = await call(one, "POST", "/stream", { publish_key: true });
  const live = await call(one, "POST", "/stream", { publish_key: true });
  expect(await publish(other, live, live.ingest.key)).toBe("allow");
  for (const [at, elsewhere] of [
    [one, other],
    [other, one],
  ] as const) {
    const former = (await call(at, "GET", `/stream/${stream.id}`)).ingest.key;
    const renewed = (await call(at, "POST", `/stream/${stream.id}/key`)).ingest.key;
    expect(await publish(elsewhere, stream, former)).toBe("deny");
    expect(await publish(at, stream, former)).toBe("deny");
    expect((await call(elsewhere, "GET", `/stream/${stream.id}`)).ingest.key).toBe(renewed);
  }
  await call(one, "POST", `/stream/${live.id}/key`);
  expect(other.service.publishing.running()).toHaveLength(1);
});

test("two renewals at the same time leave one key, which both nodes accept", async () => {
  const stream = await call(one, "POST", "/stream", { publish_key: true });
  const answers = await Promise.all([one, other].map((node) => call(node, "POST", `/stream/${stream.id}/key`)));
  const { ingest } = await call(one, "GET", `/stream/${stream.id}`);
  expect(answers.map((answer) => answer.ingest.key)).toContain(ingest.key);
  expect((await call(other, "GET", `/stream/${stream.id}`)).ingest.key).toBe(ingest.key);
  expect(await publish(other, stream, ingest.key)).toBe("allow");
});
