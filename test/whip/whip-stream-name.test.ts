// The query of a WHIP offer: the name and the custom arguments it contains, byte for byte (P1, P2; W1–W3,
// W23).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addStream, STREAM } from "../support/publishing.ts";
import { expectProblem, openWhipGateway, TO_OURSELVES, type WhipGateway } from "../support/whip-gateway.ts";

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway();
});
afterEach(() => gateway.close());

/** The body the customer gets, one character per byte. */
const told = (custom: string, clientId: number) =>
  `${custom}call=publish&name=${STREAM}&app=live&addr=203.0.113.7&clientid=${clientId}`;
const bodies = () => gateway.customer.requests.map(({ body }) => body);

describe("custom arguments", () => {
  test.each<[what: string, query: string, custom: string]>([
    ["escaped", `stream_name=${STREAM}%3Fk%3Dv%26k2%3Dv2`, "k=v&k2=v2&"],
    ["escaped, & left", `stream_name=${STREAM}%3Fk%3Dv&k2=v2`, "k=v&"],
    ["with = left", `stream_name=${STREAM}%3Fk=v=w%26k2=`, "k=v=w&k2=&"],
    ["with more ?", `stream_name=${STREAM}%3Fk%3Dv%3Fw%3F`, "k=v?w?&"],
    ["with +", `stream_name=${STREAM}%3Fk%3Da+b%2Bc`, "k=a+b+c&"],
    ["escaped twice", `stream_name=${STREAM}%3Fk%3D%2526%253D%2541`, "k=%26%3D%41&"],
    ["in lower case", `stream_name=${STREAM}%3fk%3dv%c3%a9`, "k=v\xc3\xa9&"],
    ["not UTF-8", `stream_name=${STREAM}%3Fk%3D%FF%E9`, "k=\xff\xe9&"],
    ["broken escapes", `stream_name=${STREAM}%3Fk%3D%zz%4`, "k=%zz%4&"],
    ["with time, as signed URLs", `stream_name=${STREAM}%3Ftime%3D1%26timestamp%3D2`, "time=1&timestamp=2&"],
    ["with separators of others", `stream_name=${STREAM}%3Fa%3B%23%2F%20%22%27`, "a;#/ \"'&"],
  ])("%s reach the customer byte for byte", async (_, query, custom) => {
    const { clientId } = await gateway.opened(`${TO_OURSELVES}&${query}`);
    expect(bodies()).toStrictEqual([told(custom, clientId)]);
    expect(gateway.openings()).toMatchObject([{ name: STREAM, clientId }]);
  });

  test.each<[what: string, query: string]>([
    ["behind an unescaped ?", `stream_name=${STREAM}?k=v&k2=v2`],
    ["that are empty", `stream_name=${STREAM}%3F`],
    ["of the URL, not of the name", `k=v&stream_name=${STREAM}&call=x&name=y`],
    ["of a later stream_name", `stream_name=${STREAM}&stream_name=${STREAM}%3Fk%3Dv`],
  ])("%s are ignored", async (_, query) => {
    const { clientId } = await gateway.opened(`${query}&${TO_OURSELVES}`);
    expect(bodies()).toStrictEqual([told("", clientId)]);
  });

  test("are repeated in publish_done", async () => {
    const { clientId } = await gateway.opened(`${TO_OURSELVES}&stream_name=${STREAM}%3Fk%3D%FF`);
    gateway.end(clientId, "broadcaster_left", { bytesIn: 1_234, bytesOut: 5 });
    const { body } = await gateway.customer.received("publish_done");
    const fixed = `name=${STREAM}&bytes_in=1234&bytes_out=5&app=live&addr=203.0.113.7&clientid=${clientId}`;
    expect(body).toBe(`k=\xff&call=publish_done&${fixed}`);
  });

  test("of 2048 bytes are forwarded", async () => {
    const custom = "k=".padEnd(2_048, "v");
    const { clientId } = await gateway.opened(`${TO_OURSELVES}&stream_name=${STREAM}%3F${custom}`);
    expect(bodies()).toStrictEqual([told(`${custom}&`, clientId)]);
  });

  test.each(["call", "name", "app", "addr", "clientid", "bytes_in", "bytes_out"])(
    "with the reserved field %s are refused",
    async (field) => {
      const answer = await gateway.offer(`${TO_OURSELVES}&stream_name=${STREAM}%3Fk%3Dv%26${field}%3D1`);
      const detail = `Custom arguments must not contain ${field}`;
      expectProblem(answer, 400, "reserved_field", "Reserved field in custom arguments", detail);
      expect(bodies()).toStrictEqual([]);
    },
  );

  test.each(["NAME%3D1", "+name%3D1", "na%256De%3D1", "name%5B%5D%3D1", "k%3Bname%3D1", "bytes.in%3D1", "name"])(
    "that some parser reads as a reserved field (%s) are refused",
    async (custom) => {
      const answer = await gateway.offer(`${TO_OURSELVES}&stream_name=${STREAM}%3F${custom}`);
      expect(answer).toMatchObject({ status: 400 });
      expect(JSON.parse(answer.body)).toMatchObject({ code: "reserved_field" });
      expect(bodies()).toStrictEqual([]);
    },
  );
});

describe("a stream name", () => {
  test("is decoded once, and reported as a form encodes it", async () => {
    await addStream(gateway.db, "Ab1 é+%41", "created");
    await gateway.opened(`${TO_OURSELVES}&stream_name=Ab1%20%C3%A9+%2541`);
    expect(gateway.openings()).toMatchObject([{ name: "Ab1 é+%41" }]);
    expect(bodies()[0]).toMatch(/^call=publish&name=Ab1\+%C3%A9%2B%2541&app=live&/);
  });

  test.each<[what: string, name: string, detail: string]>([
    [
      "only of arguments",
      "%3Fk%3Dv",
      "Stream name is missing: enter it as the stream key, or after /live/ in the address",
    ],
    ["of 256 bytes", "x".repeat(256), "Stream name is longer than 255 bytes"],
    ["with a line end", `${STREAM}%0D%0A`, "Stream name contains control characters: copy the stream key again"],
    ["with NUL", `${STREAM}%00`, "Stream name contains control characters: copy the stream key again"],
    ["that is not UTF-8", `${STREAM}%FF`, "Stream name is not UTF-8"],
    ["with 2049 bytes of arguments", `${STREAM}%3F${"x".repeat(2_049)}`, "Custom arguments are longer than 2048 bytes"],
    ["with a line end in its arguments", `${STREAM}%3Fk%0A`, "Custom arguments contain control characters"],
  ])("%s is refused", async (_, name, detail) => {
    const answer = await gateway.offer(`${TO_OURSELVES}&stream_name=${name}`);
    expectProblem(answer, 400, "malformed_name", "Invalid stream name", detail);
    expect(bodies()).toStrictEqual([]);
  });

  test.each([TO_OURSELVES, `${TO_OURSELVES}&stream_name=`, `${TO_OURSELVES}&stream_name`, `${TO_OURSELVES}&name=x`])(
    "that is missing (%s) is refused",
    async (query) => {
      const answer = await gateway.offer(query);
      expectProblem(answer, 400, "parameter_required", "Parameter required", "stream_name is required");
    },
  );

  test.each(["stream_name=x", "stream_name=x&stream_url=", "stream_name=x&stream_url"])(
    "without stream_url (%s) is refused",
    async (query) => {
      const answer = await gateway.offer(query);
      expectProblem(answer, 400, "parameter_required", "Parameter required", "stream_url is required");
    },
  );

  test("and stream_url may follow an unescaped ?", async () => {
    await gateway.opened(`a=b?stream_name=${STREAM}?stream_url=rtmp%3A%2F%2Fingest.example%2Flive`);
    expect(gateway.openings()).toMatchObject([{ name: STREAM, ownUpstream: null }]);
  });
});
