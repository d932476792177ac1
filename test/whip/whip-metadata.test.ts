// Data that a broadcaster sends: metadata during the broadcast, connect_info for its own upstream (P11, P12).
import { afterEach, beforeEach, expect, test } from "vitest";
import { readJsonObject, writeAmf0 } from "../../ts/publish/whip/amf0.ts";
import { expectProblem, NO_SESSION, openWhipGateway, TO_STREAM, type WhipGateway } from "../support/whip-gateway.ts";

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway();
});
afterEach(() => gateway.close());

const send = (session: string, body: unknown) =>
  gateway.call("POST", `${session}/metadata`, { body: typeof body === "string" ? body : JSON.stringify(body) });
const sent = () => gateway.media.commands.filter((each) => each.command === "send_whip_data");

const deep = (levels: number): object => (levels === 1 ? {} : { a: deep(levels - 1) });

test.each(["onMetaData", "onCuePoint"])("%s is sent as an AMF0 data message", async (handlerName) => {
  const { session, clientId } = await gateway.opened();
  const payload = { title: "Finale", number: 1.5, on: true, none: null, list: ["a", 2], inner: { x: "é" } };
  expect((await send(session, { handlerName, payload })).status).toBe(200);
  const data = writeAmf0(handlerName, payload).toString("latin1");
  expect(sent()).toStrictEqual([{ command: "send_whip_data", clientId, data }]);
});

test("AMF0 is encoded as specified", () => {
  expect(writeAmf0("on", { a: 1, b: [true, null] }).toString("hex")).toBe(
    "0200026f6e03000161003ff0000000000000000162" + "0a00000002010105000009",
  );
  const long = writeAmf0("x".repeat(70_000));
  expect(long.subarray(0, 5).toString("hex")).toBe("0c00011170");
  expect(long).toHaveLength(70_005);
});

test("an object has at most 1,024 members and six levels", () => {
  const wide = (members: number) => JSON.stringify({ a: Array.from({ length: members - 1 }, () => null) });
  expect(readJsonObject(wide(1_024))).not.toBeNull();
  expect(readJsonObject(wide(1_025))).toBeNull();
  expect(readJsonObject(JSON.stringify(deep(6)))).not.toBeNull();
  expect(readJsonObject(JSON.stringify(deep(7)))).toBeNull();
});

test.each<[what: string, body: unknown]>([
  ["no JSON", "{"],
  ["no object", []],
  ["another handler", { handlerName: "onStatus", payload: {} }],
  ["no handler", { payload: {} }],
  ["no payload", { handlerName: "onCuePoint" }],
  ["a payload that is no object", { handlerName: "onCuePoint", payload: [1] }],
  ["seven levels", { handlerName: "onCuePoint", payload: deep(6) }],
  ["an empty key", { handlerName: "onCuePoint", payload: { "": 1 } }],
  ["over 16 KiB", { handlerName: "onCuePoint", payload: { a: "x".repeat(16_384) } }],
])("%s is refused", async (_, body) => {
  const { session } = await gateway.opened();
  const detail =
    "It must be {handlerName: onMetaData or onCuePoint, payload: an object}, nested at most 6 deep and at most 16 KiB";
  expectProblem(await send(session, body), 400, "bad_metadata", "Invalid metadata", detail);
  expect(sent()).toHaveLength(0);
});

test("metadata of an ended session is refused", async () => {
  const answer = await send(NO_SESSION, { handlerName: "onCuePoint", payload: {} });
  expectProblem(answer, 404, "unknown_session", "Unknown session", "It has ended or never existed");
});

test("connect_info reaches the media core as an AMF0 object", async () => {
  const info = { user: "é&=?", level: 3 };
  await gateway.opened(`${TO_STREAM}&connect_info=${encodeURIComponent(JSON.stringify(info))}`);
  expect(gateway.openings()[0]?.connectInfo).toStrictEqual(writeAmf0(info));
});

test.each(["[]", "x", '"x"', `{"a":"${"x".repeat(2_048)}"}`, JSON.stringify(deep(7))])(
  "connect_info %s is refused",
  async (info) => {
    const answer = await gateway.offer(`${TO_STREAM}&connect_info=${encodeURIComponent(info)}`);
    const detail = "connect_info must be a JSON object of at most 2048 bytes";
    expectProblem(answer, 400, "bad_parameter", "Invalid parameter", detail);
  },
);
