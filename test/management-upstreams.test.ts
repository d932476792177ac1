// GET, POST and DELETE of a stream's upstreams by the management API.
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Gateway, openGateway } from "./support/gateway.ts";

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

test("a stream has at most sixteen, however many come at once", async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => add({ url: `rtmp://93.184.216.34/live/key${n}` })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(16);
  expect(answers.filter(({ status }) => status === 400)).toHaveLength(4);
});

test("they are for those who may change streams, and for their own organisation", async () => {
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
