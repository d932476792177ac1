// GET, POST and DELETE of a stream's upstreams by the management API.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveSession } from "../../../ts/publish/live-sessions.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;
let id: string;

beforeEach(async () => {
  gateway = await openGateway();
  id = ((await gateway.call("POST", "/stream")).body as { id: string }).id;
});
afterEach(() => gateway.close());

const add = (body: unknown, key?: string | null) =>
  gateway.call("POST", `/stream/${id}/upstream`, { body, ...(key === undefined ? {} : { key }) });

test("an upstream is stored, listed and removed, and its secrets are never shown again", async () => {
  const added = await add({ url: "rtmps://me:word@93.184.216.34/app/key?token=1" });
  expect(added).toMatchObject({ status: 200, body: { url: "rtmps://93.184.216.34:443/app" } });
  const listed = await gateway.call("GET", `/stream/${id}/upstream`, { key: gateway.keys.readonly });
  expect(listed).toMatchObject({ status: 200, body: [added.body] });
  const { id: upstream } = added.body as { id: string };
  const path = `/stream/${id}/upstream/${upstream}`;
  expect(await gateway.call("DELETE", path)).toMatchObject({ status: 200, body: added.body });
  expect((await gateway.call("GET", `/stream/${id}/upstream`)).body).toEqual([]);
  expect(await gateway.call("DELETE", path)).toMatchObject({ status: 404, body: { error: { code: 9420 } } });
  for (const secret of ["word", "token=1", "/app/key"]) {
    expect(gateway.log() + JSON.stringify([added.body, listed.body])).not.toContain(secret);
  }
});

test("upstreams of one host and app are distinguished by label and masked key", async () => {
  const url = (key: string) => `rtmp://93.184.216.34/live/${key}`;
  await add({ url: url("main-key-1"), label: "Hauptkanal" });
  await add({ url: url("backup-key"), label: "x".repeat(100) });
  await add({ url: url("1234567"), label: "" });
  const { body } = await gateway.call("GET", `/stream/${id}/upstream`);
  const shown = { url: "rtmp://93.184.216.34:1935/live", state: null, last_error: null };
  const upstreams = body as readonly { label: string | null; masked_key: string }[];
  expect(upstreams).toHaveLength(3);
  expect(upstreams.toSorted((a, b) => (a.masked_key < b.masked_key ? -1 : 1))).toMatchObject([
    { ...shown, label: "x".repeat(100), masked_key: "ba…" },
    { ...shown, label: "Hauptkanal", masked_key: "ma…" },
    { ...shown, label: null, masked_key: "…" },
  ]);
});

test("an upstream of a live stream shows its state and why it last stopped", async () => {
  const added = (await add({ url: "rtmp://93.184.216.34/live/key", label: "Main" })).body as { id: string };
  const [lastError, lastCause] = ["the connection was refused", "connection_refused"] as const;
  const live = {
    state: "waiting",
    since: 0,
    lastError,
    lastCause,
    bytesOut: 0,
    droppedFrames: 0,
    reconnects: 0,
  } as const;
  const names = { id: added.id, label: "Main", maskedKey: "…", url: "rtmp://93.184.216.34:1935/live" };
  const upstreams = [{ ...names, ...live, source: "stream", audioError: null } as const];
  const organisationId = gateway.organisation.id;
  gateway.live.live.push({ organisationId, streamId: id, upstreams } as unknown as LiveSession);
  const listed = await gateway.call("GET", `/stream/${id}/upstream`);
  expect(listed.body).toEqual([{ ...added, state: "waiting", last_error: lastError, last_cause: lastCause }]);
});

test.each([
  [{ label: 5 }, { code: 1004, userinfo: { parameter: "label", type: "string" } }],
  [{ label: "x".repeat(101) }, { code: 9002, userinfo: { parameter: "label" } }],
  [{ label: "a\nb" }, { code: 9002, userinfo: { parameter: "label" } }],
  [{ label: "\u202eabc" }, { code: 9002, userinfo: { parameter: "label" } }],
])("the label of %j is refused", async (body, error) => {
  expect(await add({ url: "rtmp://93.184.216.34/live/key", ...body })).toMatchObject({ status: 400, body: { error } });
});

test.each([
  [{}, { code: 1002, userinfo: { required_parameter: "url" } }],
  [{ url: 5 }, { code: 1004, userinfo: { parameter: "url", type: "string" } }],
  [{ url: "http://93.184.216.34/live/key" }, { code: 9002, userinfo: { parameter: "url" } }],
  [{ url: "rtmp://inside.example/live/key" }, { code: 9002, userinfo: { parameter: "url" } }],
  [{ url: "rtmp://10.0.0.1/live/key" }, { code: 9002, userinfo: { parameter: "url" } }],
])("%j is refused", async (body, error) => {
  expect(await add(body)).toMatchObject({ status: 400, body: { error } });
});

test("a name that does not resolve is saved", async () => {
  expect(await add({ url: "rtmp://nowhere.example/live/key" })).toMatchObject({ status: 200 });
});

test("a stream has at most sixteen, however many are added concurrently", async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => add({ url: `rtmp://93.184.216.34/live/key${n}` })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(16);
  expect(answers.filter(({ status }) => status === 400)).toHaveLength(4);
});

test("they can be changed by those who may change streams, and only within their organisation", async () => {
  const body = { url: "rtmp://93.184.216.34/live/key" };
  expect(await add(body, gateway.keys.readonly)).toMatchObject({ status: 403, body: { error: { code: 2001 } } });
  expect(await add(body, null)).toMatchObject({ status: 403, body: { error: { code: 2001 } } });
  const added = await add(body, gateway.keys.user);
  expect(added.status).toBe(200);
  const { keys } = await gateway.newOrganisation("Second");
  const unknown = { status: 404, body: { error: { code: 3001 } } };
  expect(await gateway.call("GET", `/stream/${id}/upstream`, { key: keys.administrator })).toMatchObject(unknown);
  expect(await add(body, keys.administrator)).toMatchObject(unknown);
  const path = `/stream/${id}/upstream/${(added.body as { id: string }).id}`;
  expect(await gateway.call("DELETE", path, { key: keys.administrator })).toMatchObject(unknown);
});

test("an upstream is paused and resumed, says so, and its stream's running publish follows", async () => {
  const added = (await add({ url: "rtmp://93.184.216.34/live/key" })).body as { id: string };
  expect(added).toMatchObject({ paused: false });
  const path = `/stream/${id}/upstream/${added.id}`;
  const readonly = { key: gateway.keys.readonly };
  expect(await gateway.call("PUT", `${path}/pause`, readonly)).toMatchObject({ status: 403 });
  const paused = { status: 200, body: { id: added.id, paused: true } };
  expect(await gateway.call("PUT", `${path}/pause`)).toMatchObject(paused);
  expect(await gateway.call("PUT", `${path}/pause`)).toMatchObject(paused);
  expect((await gateway.call("GET", `/stream/${id}/upstream`)).body).toEqual([{ ...added, paused: true }]);
  expect(await gateway.call("PUT", `${path}/resume`)).toMatchObject({ status: 200, body: { paused: false } });
  expect(gateway.live.calls).toEqual(["paused", "paused", "resumed"].map((what) => `${what} ${id} ${added.id}`));
  const { keys } = await gateway.newOrganisation("Second");
  for (const order of ["PUT pause", "PUT resume", "POST retry", "POST test"]) {
    const [method = "", what = ""] = order.split(" ");
    const refused = await gateway.call(method, `${path}/${what}`, { key: keys.administrator });
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 3001 } } });
    const unknown = await gateway.call(method, `${path.slice(0, -4)}0000/${what}`);
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: 9420 } } });
  }
});
