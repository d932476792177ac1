// The WHIP endpoint as its clients see it: exact statuses, headers and bodies (RFC 9725; P3, P5, P6, P9, P10, P13).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STREAM } from "../support/publishing.ts";
import {
  ENDPOINT,
  expectProblem,
  NO_SESSION,
  OFFER,
  openWhipGateway,
  TO_OURSELVES,
  TO_STREAM,
  UUID,
  VERSION,
  type WhipGateway,
  type WhipGatewayOptions,
} from "../support/whip-gateway.ts";

const EXPOSED =
  "Location, ETag, Link, Accept-Post, Accept-Patch, Retry-After, Access-Control-Allow-Methods, x-request-id";

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway();
});
afterEach(() => gateway.close());

async function reopen(options: WhipGatewayOptions): Promise<void> {
  await gateway.close();
  gateway = await openWhipGateway(options);
}

describe("a slash at the end of an address", () => {
  test("means the same, with and without arguments", async () => {
    const headers = { "content-type": "application/sdp" };
    const post = await gateway.call("POST", `${ENDPOINT}/?${TO_STREAM}`, { headers, body: OFFER });
    expect(post.status).toBe(201);
    const location = new URL(post.headers.get("location") ?? "").pathname;
    expect(location).toMatch(new RegExp(`^/p/webrtc/${UUID}$`));
    for (const path of [`${ENDPOINT}/`, `${ENDPOINT}//`, `${location}/`]) {
      const preflight = await gateway.call("OPTIONS", path);
      expect([preflight.status, preflight.headers.get("accept-post")]).toStrictEqual([200, "application/sdp"]);
      expect((await gateway.call("GET", `${path}?a=b`)).status).toBe(204);
    }
    expect((await gateway.call("PUT", `${ENDPOINT}/`)).status).toBe(405);
    expect((await gateway.call("GET", `${ENDPOINT}/status.json/`)).status).toBe(200);
    expect((await gateway.call("DELETE", `${location}/`)).status).toBe(200);
    expect((await gateway.call("DELETE", location)).status).toBe(410);
  });
});

describe("an offer", () => {
  test("that is allowed is answered 201 with answer, session URL and entity tag", async () => {
    const { status, headers, body } = await gateway.offer(TO_STREAM);
    expect({ status, body }).toStrictEqual({ status: 201, body: "v=0\r\n" });
    expect(Object.fromEntries(headers)).toStrictEqual({
      "access-control-allow-origin": "*",
      "access-control-expose-headers": EXPOSED,
      "cache-control": "no-store",
      "content-type": "application/sdp",
      etag: expect.stringMatching(new RegExp(`^"${UUID}"$`)),
      location: expect.stringMatching(new RegExp(`^https://gateway\\.example/p/webrtc/${UUID}$`)),
      "referrer-policy": "no-referrer",
      "x-api-version": "1",
      "x-request-id": expect.stringMatching(new RegExp(`^${UUID}$`)),
    });
  });

  test("opens the media with the requested options", async () => {
    await gateway.opened(`${TO_STREAM}&stereo=1&audio_bitrate=64000&unknown=%zz`);
    expect(gateway.openings()).toStrictEqual([
      {
        command: "open_whip",
        clientId: expect.any(Number),
        name: STREAM,
        offer: { text: OFFER },
        upstreams: [],
        ownUpstream: null,
        stereo: true,
        startBitrateKbps: 2_500,
        maxBitrateKbps: 6_000,
        audioBitrate: 64_000,
        connectInfo: null,
        hold: { windowMs: 10_000, continues: null },
      },
    ]);
  });

  test("gets a session URL with the host and port it was posted to", async () => {
    const { headers } = await gateway.offer(TO_STREAM, { origin: "http://127.0.0.1:8080" });
    expect(headers.get("location")).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:8080/p/webrtc/${UUID}$`));
  });

  test("gets a session URL with the public URL when there is one", async () => {
    await reopen({ publicUrl: "https://live.example:8443" });
    const { headers } = await gateway.offer(TO_STREAM, { origin: "http://10.1.2.3:8080" });
    expect(headers.get("location")).toMatch(new RegExp(`^https://live\\.example:8443/p/webrtc/${UUID}$`));
  });

  test.each(["203.0.113.7", "::ffff:203.0.113.7"])("from %s reaches the customer as 203.0.113.7", async (peer) => {
    const { clientId } = await gateway.opened(TO_STREAM, { peer });
    const fields = `call=publish&name=${STREAM}&app=live&addr=203.0.113.7&clientid=${clientId}`;
    expect(gateway.customer.requests.map(({ body }) => body)).toStrictEqual([fields]);
  });

  test.each([
    "application/sdp",
    "application/sdp; charset=utf-8",
    "Application/SDP;x=y",
    "text/plain",
    "text/plain;charset=UTF-8",
  ])("may come as %s", async (type) => {
    expect((await gateway.offer(TO_STREAM, { headers: { "content-type": type } })).status).toBe(201);
  });

  test("may come without content type", async () => {
    expect((await gateway.call("POST", `${ENDPOINT}?${TO_STREAM}`, { body: OFFER })).status).toBe(201);
  });

  test.each([
    "application/json",
    "application/trickle-ice-sdpfrag",
    "application/sdpx",
    "text/plain, application/sdp",
    "*/*",
  ])("that comes as %s is refused", async (type) => {
    const answer = await gateway.offer(TO_STREAM, { headers: { "content-type": type } });
    const detail = "An offer must be sent as application/sdp";
    expectProblem(answer, 415, "unsupported_media_type", "Unsupported media type", detail);
  });

  test.each([
    ["as told by Content-Length", { "content-length": "65537" }],
    ["without Content-Length", {}],
  ])("over 64 KiB %s is refused, readable for a browser", async (_, headers) => {
    const body = OFFER.padEnd(65_537, "x");
    const answer = await gateway.offer(TO_STREAM, { body, headers });
    expectProblem(answer, 413, "body_too_large", "Offer too large", "An offer must not be larger than 64 KiB");
    expect(gateway.customer.requests).toHaveLength(0);
  });

  test("of exactly 64 KiB is accepted", async () => {
    expect((await gateway.offer(TO_STREAM, { body: OFFER.padEnd(65_536, "x") })).status).toBe(201);
  });

  test.each(["stereo=0", "stereo=true"])("with %s uses one channel, at the usual bitrate", async (query) => {
    await gateway.opened(`${TO_STREAM}&${query}`);
    expect(gateway.openings()[0]).toMatchObject({ stereo: false, audioBitrate: null });
  });

  test.each([
    ["31999", 32_000],
    ["320001", 320_000],
    ["-64000", 32_000],
    ["6.4e4", 64_000],
    ["96000.5", 96_001],
    ["0064000000", 320_000],
    ["Infinity", 320_000],
    ["", null],
    ["%20", null],
    ["64k", null],
    ["NaN", null],
  ])("with audio_bitrate=%s does not fail: the bitrate is %s", async (given, audioBitrate) => {
    await gateway.opened(`${TO_STREAM}&audio_bitrate=${given}`);
    expect(gateway.openings()[0]).toMatchObject({ audioBitrate });
  });
});

describe("the order of validation", () => {
  test.each([
    [400, "offer_malformed"],
    [422, "no_h264"],
  ] as const)("refuses a bad offer with %i before the customer or the stream is looked up", async (status, code) => {
    const { summary } = gateway.media;
    const refused = { outcome: "refused", code, status, detail: "Words about the offer" } as const;
    gateway.media.parseOffer = () => ({ summary, result: refused });
    for (const name of [STREAM, "Ab1Cd-00000"]) {
      const answer = await gateway.offer(`${TO_OURSELVES}&stream_name=${name}`);
      expectProblem(answer, status, code, "Offer refused", "Words about the offer");
    }
    expect(gateway.customer.requests).toHaveLength(0);
    expect(await gateway.db.selectFrom("publish").selectAll().execute()).toHaveLength(0);
  });

  test("refuses an empty body as a bad offer", async () => {
    const answer = await gateway.call("POST", `${ENDPOINT}?${TO_STREAM}`);
    expectProblem(answer, 400, "offer_malformed", "Offer refused", "The offer is not valid SDP");
  });

  test("asks the customer inside the POST, and the media core only after its 200", async () => {
    let openings = -1;
    gateway.customer.answer(() => {
      openings = gateway.openings().length;
      return { status: 200 };
    });
    await gateway.opened();
    expect(openings).toBe(0);
    expect(gateway.openings()).toHaveLength(1);
  });
});

describe("endpoint and session", () => {
  test.each([ENDPOINT, NO_SESSION])("answer GET and HEAD of %s with 204 and no content", async (path) => {
    for (const method of ["GET", "HEAD"]) {
      const { status, body, headers } = await gateway.call(method, path);
      expect({ status, body }).toStrictEqual({ status: 204, body: "" });
      expect(headers.get("content-type")).toBeNull();
    }
  });

  test.each([ENDPOINT, `${ENDPOINT}?${TO_STREAM}`, NO_SESSION, `${NO_SESSION}/metadata`])(
    "answer OPTIONS of %s with what they accept",
    async (path) => {
      const { status, body, headers } = await gateway.call("OPTIONS", path, {
        headers: { origin: "https://page.example", "access-control-request-method": "OPTIONS" },
      });
      expect({ status, body }).toStrictEqual({ status: 200, body: "" });
      expect(Object.fromEntries(headers)).toStrictEqual({
        "accept-patch": "application/trickle-ice-sdpfrag",
        "accept-post": "application/sdp",
        "access-control-allow-headers": "Authorization, Content-Type, If-Match, ETag, traceparent, tracestate",
        "access-control-allow-methods": "POST, PATCH, DELETE, GET, OPTIONS",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": EXPOSED,
        "access-control-max-age": "86400",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-api-version": "1",
        "x-request-id": expect.stringMatching(new RegExp(`^${UUID}$`)),
      });
    },
  );

  test.each([
    ["PUT", ENDPOINT, ["GET", "HEAD", "OPTIONS", "POST"]],
    ["DELETE", ENDPOINT, ["GET", "HEAD", "OPTIONS", "POST"]],
    ["PUT", NO_SESSION, ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH"]],
    ["POST", NO_SESSION, ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH"]],
  ])("refuse %s of %s and list what is allowed", async (method, path, allowed) => {
    const answer = await gateway.call(method, path);
    expectProblem(answer, 405, "method_not_allowed", "Method not allowed", "See the Allow header");
    expect(answer.headers.get("allow")?.split(", ").sort()).toStrictEqual(allowed);
  });

  test("have nothing below a session", async () => {
    const answer = await gateway.call("POST", `${NO_SESSION}/nothing`);
    expectProblem(answer, 404, "unknown_address", "Unknown address", "There is nothing at this address");
  });

  test("return the version in status.json", async () => {
    const { status, body, headers } = await gateway.call("GET", `${ENDPOINT}/status.json`);
    expect({ status, body }).toStrictEqual({ status: 200, body: JSON.stringify({ server_version: VERSION }) });
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  });
});
