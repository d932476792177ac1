// Web tokens for streams that do not exist: made as T2 says, unless the operator wants every stream to exist; then a request
// may still say that it shall not be checked.
import { afterEach, expect, test } from "vitest";
import { type Gateway, openGateway } from "../support/gateway.ts";

let gateway: Gateway;
afterEach(() => gateway.close());

const ask = (streamname: string, more: object = {}) =>
  gateway.call("POST", "/webcaster", { body: { streamname, ingesturl: "rtmp://ingest.example/live", ...more } });
const TOKEN = { success: true, data: { token: expect.stringMatching(/^eyJ/) } };

test("are made by default, with the documented response and nothing more", async () => {
  gateway = await openGateway();
  for (const more of [{}, { unchecked: true }, { unchecked: false }]) {
    const { status, body } = await ask("any name at all?with=arguments", more);
    expect([status, body]).toStrictEqual([200, TOKEN]);
  }
});

test("are refused in the form of token errors where every stream must exist, unless the request says unchecked", async () => {
  gateway = await openGateway({ HEADGATE_TOKEN_UNKNOWN_STREAMS: "refuse" });
  const created = (await gateway.call("POST", "/stream")).body as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const name = created.ingest.rtmp.streamname;
  expect((await ask(`${name}?passcode=s3cret`)).body).toStrictEqual(TOKEN);
  const { status, body } = await ask("Ab1Cd-nobodys");
  expect([status, Object.keys(body as object).sort()]).toEqual([404, ["errorCode", "message", "success"]]);
  expect(body).toMatchObject({ success: false });
  expect((await ask("Ab1Cd-nobodys", { unchecked: true })).body).toStrictEqual(TOKEN);
  for (const refused of [null, false]) expect((await ask("Ab1Cd-nobodys", { unchecked: refused })).status).toBe(404);
  await gateway.call("DELETE", `/stream/${created.id}`);
  expect((await ask(name)).status).toBe(404);
});
