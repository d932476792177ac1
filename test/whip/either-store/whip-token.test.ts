// Web tokens at the WHIP endpoint (T6, T7): a token of ours determines where to publish; every other bearer
// is ignored.
import { generateKeyPair, SignJWT } from "jose";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STREAM } from "../../support/publishing.ts";
import { expectProblem, openWhipGateway, TO_STREAM, type WhipGateway } from "../../support/whip-gateway.ts";

const INGEST = "rtmp://ingest.example/live";
const VALIDITY_S = 604_800;

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway();
});
afterEach(() => gateway.close());

const issue = (streamname: string, ingesturl = INGEST, nbf: number | null = null, org: string | null = "Ab1Cd") =>
  gateway.tokens.issue({ streamname, ingesturl, exp: null, nbf, org });
const offer = (token: string, query: string) => gateway.offer(query, { headers: { authorization: `Bearer ${token}` } });
const bodies = () => gateway.customer.requests.map(({ body }) => body);

describe("a token of ours", () => {
  test.each<[what: string, query: string]>([
    ["alone", ""],
    ["with other parameters", "stereo=1"],
    ["with the same name", `stream_name=${STREAM}%3Fpasscode%3Ds3cret`],
    ["with the same URL", `stream_url=${INGEST}`],
    ["with both", `stream_name=${STREAM}%3Fpasscode%3Ds3cret&stream_url=${encodeURIComponent(INGEST)}`],
  ])("%s determines where to publish, and with which arguments", async (_, query) => {
    const authorization = `Bearer ${await issue(`${STREAM}?passcode=s3cret`)}`;
    const { clientId } = await gateway.opened(query, { headers: { authorization } });
    const fixed = `call=publish&name=${STREAM}&app=live&addr=203.0.113.7&clientid=${clientId}`;
    expect(bodies()).toStrictEqual([`passcode=s3cret&${fixed}`]);
  });

  test.each(["bearer", "BEARER", "Bearer "])("is accepted after %j", async (scheme) => {
    const authorization = `${scheme} ${await issue(STREAM)}`;
    await gateway.opened("", { headers: { authorization } });
  });

  test.each([
    "stream_name=Ab1Cd-00000",
    `stream_name=${STREAM}%3Fpasscode%3Dother`,
    `stream_name=${STREAM}?passcode=s3cret`,
    `stream_name=${STREAM}%3Fpasscode%3Ds3cret&stream_url=rtmp://other.example/live`,
    "stream_url=rtmp://ingest.example:1936/live",
    "stream_url=rtmps://ingest.example/live",
    "stream_url=rtmp://ingest.example/live/x",
  ])("that does not match %s is refused", async (query) => {
    const answer = await offer(await issue(`${STREAM}?passcode=s3cret`), query);
    expectProblem(answer, 403, "token_mismatch", "Token of another stream", "The token is for another stream");
    expect(bodies()).toStrictEqual([]);
  });

  test.each(["rtmp://INGEST.example/live", "RTMP://ingest.example:1935/live", "rtmp://ingest.example/live/"])(
    "matches its own ingest URL however %s is spelled",
    async (url) => {
      const authorization = `Bearer ${await issue(STREAM)}`;
      await gateway.opened(`stream_url=${encodeURIComponent(url)}`, { headers: { authorization } });
    },
  );

  test("is refused for a stream of another organisation, whatever its name", async () => {
    const answer = await offer(await issue(STREAM, INGEST, null, "Zz9Yy"), "");
    const detail = "The token belongs to a different organisation than the stream";
    expectProblem(answer, 403, "token_mismatch", "Token of another stream", detail);
    expect(bodies()).toStrictEqual([]);
  });

  test("of the operator, or from before tokens named their organisation, is accepted for any stream", async () => {
    await gateway.opened("", { headers: { authorization: `Bearer ${await issue(STREAM, INGEST, null, null)}` } });
  });

  test("is required for a stream whose organisation requires one", async () => {
    await gateway.change({ require_token: true });
    const without = await gateway.offer(TO_STREAM);
    expectProblem(without, 401, "token_required", "Token required", "A web token for this stream is required");
    expect(bodies()).toStrictEqual([]);
    await gateway.opened("", { headers: { authorization: `Bearer ${await issue(STREAM)}` } });
  });

  test("does not permit a URL that is not allowed", async () => {
    const answer = await offer(await issue(STREAM, "rtmp://other.example/live"), "");
    expectProblem(answer, 400, "bad_stream_url", "Invalid stream_url", "It must be rtmp://<an allowed host>/live");
  });

  test("does not permit a reserved field", async () => {
    const answer = await offer(await issue(`${STREAM}?name=other`), "");
    expect(answer.status).toBe(400);
    expect(bodies()).toStrictEqual([]);
  });

  test("that has expired is refused, whatever the query contains", async () => {
    const token = await issue(STREAM);
    gateway.clock.ms += VALIDITY_S * 1_000 - 1;
    expect((await offer(token, "")).status).toBe(201);
    gateway.clock.ms += 1;
    for (const query of ["", TO_STREAM]) {
      const answer = await offer(token, query);
      expectProblem(answer, 401, "bad_token", "Invalid token", "jwt expired");
      expect(answer.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
    }
    expect(bodies()).toHaveLength(1);
  });

  test("that has expired does not end a running publish", async () => {
    const authorization = `Bearer ${await issue(STREAM)}`;
    const { session } = await gateway.opened("", { headers: { authorization } });
    gateway.clock.ms += VALIDITY_S * 1_000;
    expect(gateway.media.commands.filter(({ command }) => command === "end")).toStrictEqual([]);
    const answer = await gateway.call("DELETE", session, { headers: { authorization } });
    expect(answer.status).toBe(200);
  });

  test("that is not valid yet is refused", async () => {
    const token = await issue(STREAM, INGEST, gateway.tokens.now() + 3_600);
    expectProblem(await offer(token, TO_STREAM), 401, "bad_token", "Invalid token", "jwt not active");
  });

  test("whose signature was changed is refused", async () => {
    const token = await issue(STREAM);
    const [header, , signature] = token.split(".");
    const claims = (await issue("Ab1Cd-00000")).split(".")[1];
    const answer = await offer([header, claims, signature].join("."), TO_STREAM);
    expectProblem(answer, 401, "bad_token", "Invalid token", "invalid signature");
  });
});

describe("a bearer that is not a token of ours", () => {
  const BEARERS = ["undefined", "null", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "s3cret-key-of-a-proxy"];

  test.each(BEARERS)("is ignored: %s", async (bearer) => {
    expect((await offer(bearer, TO_STREAM)).status).toBe(201);
  });

  test("is ignored when it is a token of another issuer", async () => {
    const { privateKey } = await generateKeyPair("ES256");
    const foreign = await new SignJWT({ streamname: "other", ingesturl: "rtmp://other.example/live" })
      .setProtectedHeader({ alg: "ES256", typ: "JWT" })
      .setIssuer("https://somebody.example")
      .setExpirationTime(0)
      .sign(privateKey);
    expect((await offer(foreign, TO_STREAM)).status).toBe(201);
  });

  test.each(["Basic dXNlcjpwYXNz", "Bearer", "Bearer a b"])("is ignored in another form: %s", async (authorization) => {
    expect((await gateway.offer(TO_STREAM, { headers: { authorization } })).status).toBe(201);
  });

  test("does not replace the query", async () => {
    const answer = await offer("undefined", "");
    expectProblem(answer, 400, "parameter_required", "Parameter required", "stream_name is required");
  });
});
