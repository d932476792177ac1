// Several nodes on one database: each knows why a session of another one has ended, also after that node is gone, and
// refuses a stream after an end on any of them.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { keepEnd } from "../../ts/cluster/kept-ends.ts";
import { NO_MEDIA } from "../../ts/media/events.ts";
import { ensureFirstOrganisation } from "../../ts/organisation/organisations.ts";
import { endingBy, endingText } from "../../ts/publish/ending/ending.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { until } from "../support/publishing.ts";
import { databasesWithTables } from "../support/stores.ts";
import { type Node, type Nodes, openNodes } from "../support/two-nodes.ts";

let server: PostgresServer;
let newDatabase: () => Promise<string>;
let nodes: Nodes;
let [here, there]: Node[] = [];
let key = "";
let stream: { readonly id: string; readonly name: string };

beforeAll(async () => {
  server = await startPostgres();
  newDatabase = await databasesWithTables(server);
});
afterAll(() => server.close());
beforeEach(async () => {
  nodes = await openNodes(await newDatabase());
  [here, there] = [await nodes.add(), await nodes.add()];
  const first = await ensureFirstOrganisation(here.db, null, nodes.clock.ms);
  key = first.outcome === "created" ? (first.key ?? "") : "";
  const { body } = await here.call("POST", "/stream", { key });
  const { id, ingest } = body as { id: string; ingest: { rtmp: { streamname: string } } };
  stream = { id, name: ingest.rtmp.streamname };
}, 60_000);
afterEach(() => nodes.close());

const PEER = { incoming: { socket: { remoteAddress: "203.0.113.7", remotePort: 1, remoteFamily: "IPv4" } } };
const ask = async (node: Node | undefined, method: string, path: string, body?: string) => {
  const headers = body === undefined ? {} : { "content-type": "application/sdp" };
  const init = { method, headers, ...(body !== undefined && { body }) };
  return (await node?.service.app.request(`http://127.0.0.1${path}`, init, PEER)) as Response;
};
const offer = (node: Node | undefined) =>
  ask(node, "POST", `/p/webrtc?stream_name=${stream.name}&stream_url=rtmp://127.0.0.1/live`, "v=0\r\n");

async function opened(node: Node | undefined): Promise<{ readonly session: string; readonly clientId: number }> {
  const response = await offer(node);
  expect(response.status, await response.clone().text()).toBe(201);
  const { clientId } = node?.service.publishing.running().at(-1) ?? { clientId: 0 };
  return { session: new URL(response.headers.get("location") ?? "").pathname, clientId };
}

const isEnded = async (clientId: number) => {
  const row = await there?.db
    .selectFrom("publish")
    .select("state")
    .where("client_id", "=", clientId)
    .executeTakeFirst();
  return row?.state === "ended";
};

test("a node answers why a session of another one has ended, and refuses the stream that was stopped there", async () => {
  const { session, clientId } = await opened(here);
  expect((await ask(there, "GET", session)).status).toBe(204);
  const body = { reason: "Off air", refuse_s: 30 };
  expect(await here?.call("PUT", `/stream/${stream.id}/stop`, { key, body })).toMatchObject({ status: 200 });
  here?.service.publishing.handle({
    ...({ kind: "publish_ended", reason: "kicked", held: false } as const),
    clientId,
    ...NO_MEDIA,
  });
  await until(() => isEnded(clientId));
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const answer = await ask(there, method, session);
    expect(answer.status).toBe(410);
    expect(await answer.json()).toMatchObject({
      code: "ended_by_api",
      ended_by: "api",
      detail: "Off air",
      final: true,
    });
  }
  for (const node of [here, there]) {
    const refused = await offer(node);
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: "refused_after_end" }]);
  }
  await there?.call("PUT", `/stream/${stream.id}/unlock`, { key });
  await opened(there);
}, 60_000);

test("after a takeover the session of the node that is gone was lost, and may be followed by another", async () => {
  const { session, clientId } = await opened(here);
  await there?.db
    .updateTable("node")
    .set({ state: "lost" })
    .where("epoch", "=", here?.service.epoch() ?? 0)
    .execute();
  await there?.service.publishing.takeOver("node_lost");
  expect(await isEnded(clientId)).toBe(true);
  const answer = await ask(there, "GET", session);
  expect([answer.status, await answer.json()]).toMatchObject([410, { code: "service_stopped", final: false }]);
  nodes.clock.ms += 121_000;
  expect((await ask(there, "GET", session)).status).toBe(204);
}, 60_000);

test("an end that was asked for before the node was gone is still the end", async () => {
  const { session, clientId } = await opened(here);
  await here?.call("POST", `/session/${clientId}/kick`, { key, body: { reason: "Off air" } });
  here?.service.publishing.handle({
    ...({ kind: "publish_ended", reason: "broadcaster_left", held: false } as const),
    clientId,
    ...NO_MEDIA,
  });
  await until(() => isEnded(clientId));
  await there?.db
    .updateTable("node")
    .set({ state: "lost" })
    .where("epoch", "=", here?.service.epoch() ?? 0)
    .execute();
  const answer = await ask(there, "GET", session);
  expect([answer.status, await answer.json()]).toMatchObject([410, { code: "ended_by_api", detail: "Off air" }]);
}, 60_000);

test("an end that a node did not carry out before it was gone is still the end", async () => {
  const { session, clientId } = await opened(here);
  const epoch = here?.service.epoch() ?? 0;
  const ending = endingText(endingBy({ kind: "key", id: null }, "Off air"));
  await keepEnd(there?.db as Node["db"], { epoch, clientId, ending });
  await there?.db.updateTable("node").set({ state: "lost" }).where("epoch", "=", epoch).execute();
  // Another node ends the other half of the publishes.
  const other = { of: 2, index: (clientId + 1) % 2 };
  await there?.service.publishing.takeOver("node_lost", other);
  await there?.service.publishing.takeOver("node_lost", { of: 2, index: clientId % 2 });
  const answer = await ask(there, "GET", session);
  expect([answer.status, await answer.json()]).toMatchObject([
    410,
    { code: "ended_by_api", detail: "Off air", final: true },
  ]);
  const publishes = await there?.call("GET", `/stream/${stream.id}/publish`, { key });
  expect(publishes?.body).toMatchObject([
    { end_reason: "node_lost", end: { code: "ended_by_api", reason: "Off air", who: { kind: "key" } } },
  ]);
  expect(await there?.db.selectFrom("kept_end").select("client_id").execute()).toEqual([]);
}, 60_000);
