// Requests about a publish of another node, here a server of the test: what is forwarded, and what happens
// when that node does not answer. Whole nodes are in cluster-commands.test.ts.
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { Hono } from "hono";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Call, type Channel, openChannel } from "../../ts/cluster/channel.ts";
import type { Node } from "../../ts/cluster/nodes.ts";
import { createOwners, type Owned } from "../../ts/cluster/owners.ts";
import { signCall } from "../../ts/cluster/signature.ts";
import { NodeAway } from "../../ts/errors.ts";
import { placement } from "../../ts/http/cluster/forwarding.ts";
import { nodeApp } from "../../ts/http/cluster/node-app.ts";
import { until } from "../support/child.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

/** The secret that the nodes share. */
const CLUSTER_KEY = Buffer.alloc(32);
const CLIENT_ID = 7;
/** Connections for the short calls to one node. */
const CONNECTIONS = 64;
/** For webhook.deadline_ms. */
const LONGEST_DEADLINE_MS = 10_000;

let gateway: Gateway;
let server: Server;
let channel: Channel;
let heard: IncomingHttpHeaders[];
let keptEnds: number[];
/** The other node, and the publish there. */
let node: Node;
let isAway: boolean;
let isRunning: boolean;
/** What the first, second … search for a stream's publish finds. */
let found: (Owned | null)[];

beforeEach(async () => {
  [heard, keptEnds, isAway, isRunning, found] = [[], [], false, true, []];
  server = createServer((request, response) => {
    heard.push(request.headers);
    if (isAway) response.destroy();
    else response.end("{}");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  node = { name: "other", epoch: 2, channel: `http://127.0.0.1:${port}` } as Node;
  channel = openChannel(CLUSTER_KEY, Date.now);
  const ofClient = async (clientId: number): Promise<Owned | null> =>
    isRunning && clientId === CLIENT_ID
      ? { clientId, organisationId: gateway.organisation.id, streamId: "s", node }
      : null;
  const ofStream = async () => found.shift() ?? null;
  const owners = { ofClient, ofStream, ofSession: () => node };
  const keepEnd = async ({ clientId }: Owned) => void keptEnds.push(clientId);
  gateway = await openGateway({}, { elsewhere: { owners: owners as never, channel, keepEnd } });
});
afterEach(async () => {
  await gateway.close();
  await channel.close();
  server.close();
});

const kick = (headers: Readonly<Record<string, string>> = {}) =>
  gateway.call("POST", `/session/${CLIENT_ID}/kick`, { body: {}, headers });

test("a request whose client waited for 100 Continue is forwarded like any other", async () => {
  expect(await kick({ expect: "100-continue" })).toMatchObject({ status: 200 });
  expect(heard).toHaveLength(1);
  expect(heard[0]).not.toHaveProperty("expect");
});

test("a request whose client has left before it is forwarded is not", async () => {
  const { app, keys } = gateway;
  const headers = { "x-service-apikey": keys.administrator, "content-type": "application/json" };
  const outgoing = { destroyed: true, once() {} };
  const init = { method: "POST", headers, body: "{}" };
  await app.request(`/session/${CLIENT_ID}/kick`, init, { outgoing } as never);
  expect(heard).toEqual([]);
});

test("a forwarded request has one id on both nodes, which the client cannot choose", async () => {
  const { headers } = await kick({ "headgate-request": "00000000-0000-4000-8000-000000000000" });
  expect(headers.get("x-request-id")).toMatch(/^[\da-f]{8}-/);
  expect(heard[0]?.["headgate-request"]).toBe(headers.get("x-request-id"));
  expect(heard[0]?.["headgate-request"]).not.toBe("00000000-0000-4000-8000-000000000000");
});

test("the id that another node reports is in the answer and in the audit log, from nodes only", async () => {
  const reported = "00000000-0000-4000-8000-000000000000";
  const { app, keys, db } = gateway;
  const node = nodeApp({
    serve: (request, env) => app.fetch(request, env),
    ...{ key: CLUSTER_KEY, clock: { now: Date.now }, log: pino({ level: "silent" }), questions: {} },
  });
  const headers = { "x-service-apikey": keys.administrator, "headgate-request": reported };
  const call = { method: "POST", target: "/passed-on/stream", body: new Uint8Array(), client: "203.0.113.7" };
  const signed = { "headgate-call": signCall(CLUSTER_KEY, call, Date.now()), "headgate-client": call.client };
  const passedOn = await node.request(call.target, { method: "POST", headers: { ...headers, ...signed } });
  expect([passedOn.status, passedOn.headers.get("x-request-id")]).toEqual([200, reported]);
  const direct = await gateway.call("POST", "/stream", { headers: { "headgate-request": reported } });
  expect(direct.status).toBe(200);
  const entries = await db.selectFrom("audit").select("request_id").orderBy("id").execute();
  expect(entries.map(({ request_id }) => request_id)).toEqual([reported, direct.headers.get("x-request-id")]);
  expect(direct.headers.get("x-request-id")).not.toBe(reported);
});

test("ending a publish of an unreachable node never counts as done, also under an Idempotency-Key", async () => {
  const headers = { "idempotency-key": "kick-1" };
  isAway = true;
  expect(await kick(headers)).toMatchObject({ status: 503 });
  expect(await kick(headers)).toMatchObject({ status: 503 });
  expect(keptEnds).toEqual([CLIENT_ID, CLIENT_ID]);
  isRunning = false;
  expect(await kick(headers)).toMatchObject({ status: 404, body: { error: { code: 9007 } } });
});

test.each([
  ["PUT", "lock"],
  ["PUT", "stop"],
  ["DELETE", ""],
])("a publish that another node accepts during %s of its stream %s is ended there", async (method, path) => {
  const { id } = (await gateway.call("POST", "/stream", { body: {} })).body as { readonly id: string };
  const late = { clientId: 9, organisationId: gateway.organisation.id, streamId: id, node: { name: "other" } as Node };
  found = [null, late];
  const target = `/stream/${encodeURIComponent(id)}${path === "" ? "" : `/${path}`}`;
  expect(await gateway.call(method, target, { body: {} })).toMatchObject({ status: 200 });
  expect(keptEnds).toEqual([9]);
});

test("a forwarded offer is given more time than a customer may take, and delays no other call", async () => {
  const calls: Call[] = [];
  const call: Channel["call"] = async (_, one) => {
    calls.push(one);
    return { statusCode: 201, headers: {}, body: Readable.from([]) } as never;
  };
  const owners = { withRoom: () => ({ name: "other" }) as Node };
  const place = placement(
    { owners: owners as never, channel: { ...channel, call }, keepEnd: async () => {} },
    () => "",
  );
  const app = new Hono().post("*", async (c) => (await place(c)) ?? c.notFound());
  await app.request("/p/webrtc", { method: "POST", headers: { authorization: "Bearer token" } });
  expect(calls).toEqual([expect.objectContaining({ isLongLived: true })]);
  expect(calls[0]?.answerLimitMs).toBeGreaterThan(LONGEST_DEADLINE_MS);
});

test("a node that does not answer a call in time counts as unreachable", async () => {
  server.removeAllListeners("request");
  const call = channel.call(node, { method: "GET", target: "/slow", answerLimitMs: 50 });
  await expect(call).rejects.toThrow(NodeAway);
});

test("a short response that stops half-way ends the call, and a long-lived one may pause", async () => {
  server.removeAllListeners("request");
  server.on("request", (_, response) => response.write("{"));
  const bodyOf = async (isLongLived: boolean) =>
    (await channel.call(node, { method: "GET", target: "/", isLongLived })).body.text();
  const pausing = bodyOf(true).then(
    () => "ended",
    () => "broken",
  );
  await expect(bodyOf(false)).rejects.toThrow("Body Timeout");
  expect(await Promise.race([pausing, "pausing"])).toBe("pausing");
});

test("a call that waits for a connection ends at its limit or with its signal, and is never sent", async () => {
  const waiting: ServerResponse[] = [];
  server.removeAllListeners("request");
  server.on("request", (_, response) => waiting.push(response));
  const call = (options: Partial<Call>) => channel.call(node, { method: "GET", target: "/", ...options });
  const answers = Array.from({ length: CONNECTIONS }, async () => (await call({ answerLimitMs: 60_000 })).body.text());
  await until("no connection is left", () => waiting.length === CONNECTIONS);
  await expect(call({ answerLimitMs: 50 })).rejects.toThrow(NodeAway);
  const left = new AbortController();
  const abandoned = call({ signal: left.signal });
  left.abort(new Error("the client has left"));
  await expect(abandoned).rejects.toThrow("the client has left");
  for (const response of waiting) response.end("late");
  expect(await Promise.all(answers)).toEqual(Array(CONNECTIONS).fill("late"));
  const last = call({});
  await until("it has arrived", () => waiting.length > CONNECTIONS);
  waiting.at(-1)?.end("last");
  expect(await (await last).body.text()).toBe("last");
  expect(waiting).toHaveLength(CONNECTIONS + 1);
});

test.each(["/organisation/events?stream=s", "/live/s.flv", "/capture/c/file"])(
  "responses to GET %s that do not end delay no other call to their node",
  async (path) => {
    let open = 0;
    server.removeAllListeners("request");
    server.on("request", ({ url }, response) => {
      if (url === `/passed-on${path}`) {
        open += 1;
        response.writeHead(200).flushHeaders();
      } else response.end("{}");
    });
    found = Array.from({ length: CONNECTIONS }, () => ({ clientId: 9, organisationId: "o", streamId: "s", node }));
    const reading = Promise.allSettled(Array.from({ length: CONNECTIONS }, () => gateway.call("GET", path)));
    await until("all are open", () => open === CONNECTIONS);
    expect(await kick()).toMatchObject({ status: 200 });
    server.closeAllConnections();
    await reading;
  },
);

test("a stream whose id or name the store cannot hold runs on no other node", async () => {
  const { ofStream, ofName } = createOwners(gateway.db, { epoch: 1, nodes: () => [{ epoch: 2 } as Node] });
  for (const id of ["none", "\0", "\ud800"]) expect([await ofStream(id), await ofName(id)]).toEqual([null, null]);
});
