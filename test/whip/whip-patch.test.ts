// PATCH of a session: the order of its refusals, entity tags, more candidates and ICE restarts (RFC 9725 4.3, P8).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  expectProblem,
  NO_SESSION,
  openWhipGateway,
  TO_STREAM,
  UUID,
  type WhipAnswer,
  type WhipCall,
  type WhipGateway,
} from "../support/whip-gateway.ts";

const TYPE = "application/trickle-ice-sdpfrag";
const FRAGMENT = "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=end-of-candidates\r\n";
const TAG = new RegExp(`^"${UUID}"$`);

let gateway: WhipGateway;
let session: string;
let clientId: number;
let etag: string;

async function begin(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await openWhipGateway({ env });
  const { headers } = await gateway.offer(TO_STREAM);
  session = new URL(headers.get("location") ?? "").pathname;
  etag = headers.get("etag") ?? "";
  clientId = gateway.openings().at(-1)?.clientId ?? -1;
}
beforeEach(() => begin());
afterEach(() => gateway.close());

function patch(headers: Readonly<Record<string, string>>, call: WhipCall = {}, path = session): Promise<WhipAnswer> {
  return gateway.call("PATCH", path, { body: FRAGMENT, ...call, headers: { "content-type": TYPE, ...headers } });
}
const patches = () => gateway.media.commands.filter(({ command }) => command === "patch_whip");

describe("a fragment", () => {
  test.each([
    ["the session's tag", () => etag],
    ["a list with it", () => `"other", ${etag}`],
    ["an asterisk", () => "*"],
    ["an asterisk in quotes", () => '"*"'],
  ])("with %s is passed to the media core and answered 204 without a tag", async (_, ifMatch) => {
    const { status, headers, body } = await patch({ "if-match": ifMatch() });
    expect({ status, body }).toStrictEqual({ status: 204, body: "" });
    expect(headers.get("etag")).toBeNull();
    expect(patches()).toStrictEqual([{ command: "patch_whip", clientId, fragment: FRAGMENT }]);
  });

  test("that restarts ICE is answered 200 with our credentials and a new tag, and the old tag is stale then", async () => {
    gateway.media.patched = { outcome: "restarted", fragment: "a=ice-ufrag:ours\r\n" };
    const { status, headers, body } = await patch({ "if-match": etag });
    expect({ status, body }).toStrictEqual({ status: 200, body: "a=ice-ufrag:ours\r\n" });
    expect(headers.get("content-type")).toBe(TYPE);
    expect(headers.get("etag")).toMatch(TAG);
    expect(headers.get("etag")).not.toBe(etag);
    expect((await patch({ "if-match": etag })).status).toBe(412);
    gateway.media.patched = { outcome: "added" };
    expect((await patch({ "if-match": headers.get("etag") ?? "" })).status).toBe(204);
  });

  test.each([
    [400, 400, "bad_fragment", "Fragment refused", "Words of the core"],
    [429, 429, "too_many_requests", "Too many requests", "Words of the core"],
    [404, 404, "unknown_session", "Unknown session", "It has ended or never existed"],
  ] as const)("that the core refuses with %i is answered %i", async (told, status, code, title, detail) => {
    gateway.media.patched = { outcome: "refused", code: "any", status: told, detail: "Words of the core" };
    expectProblem(await patch({ "if-match": "*" }), status, code, title, detail);
  });

  test("may have parameters in its content type", async () => {
    expect((await patch({ "if-match": "*", "content-type": `${TYPE.toUpperCase()}; charset=utf-8` })).status).toBe(204);
  });
});

describe("the order of refusals", () => {
  const tooLarge = "a".repeat(65_537);

  test("is 404, 413, 415, 400, 428, 412", async () => {
    const wrong = { "content-type": "application/sdp" };
    expect((await patch(wrong, { body: tooLarge }, NO_SESSION)).status).toBe(404);
    const statuses = [
      await patch(wrong, { body: tooLarge }),
      await patch(wrong, { body: "none" }),
      await patch({}, { body: "none" }),
      await patch({}),
      await patch({ "if-match": '"stale"' }),
      await patch({ "if-match": `W/${etag}` }),
    ].map(({ status }) => status);
    expect(statuses).toStrictEqual([413, 415, 400, 428, 412, 412]);
    expect(patches()).toHaveLength(0);
  });

  test("uses a problem document for each that a page may read", async () => {
    expectProblem(await patch({}), 428, "precondition_required", "Precondition required", expect.any(String) as never);
    const stale = await patch({ "if-match": '"stale"' });
    expectProblem(
      stale,
      412,
      "precondition_failed",
      "Precondition failed",
      "The entity tag is not the session's current one",
    );
    const large = await patch({}, { body: tooLarge, headers: { "content-length": "65537" } });
    expect(large.headers.get("access-control-expose-headers")).toContain("ETag");
    expect(large.status).toBe(413);
  });
});

test("without If-Match it is accepted when the operator allows it; a stale tag is refused nevertheless", async () => {
  await gateway.close();
  await begin({ HEADGATE_WHIP_LENIENT_PATCH: "on" });
  expect((await patch({})).status).toBe(204);
  expect((await patch({ "if-match": '"stale"' })).status).toBe(412);
});
