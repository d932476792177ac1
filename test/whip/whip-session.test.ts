// WHIP sessions: ended by their URL alone, forgotten with their publish, and never disclosed (P7, P10, W17).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STREAM, until } from "../support/publishing.ts";
import {
  expectProblem,
  NO_SESSION,
  openWhipGateway,
  TO_OURSELVES,
  TO_STREAM,
  type WhipAnswer,
  type WhipGateway,
} from "../support/whip-gateway.ts";

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway();
});
afterEach(() => gateway.close());

const unknownSession = (answer: WhipAnswer) =>
  expectProblem(answer, 404, "unknown_session", "Unknown session", "It has ended or never existed");

describe("a session", () => {
  test("is ended by DELETE, whatever its If-Match and its Authorization, and a repetition is told so", async () => {
    const { session, clientId } = await gateway.opened();
    const headers = { "if-match": '"stale"', authorization: "Bearer undefined" };
    const { status, body } = await gateway.call("DELETE", session, { headers });
    expect({ status, body }).toStrictEqual({ status: 200, body: "" });
    expect(gateway.media.commands.at(-1)).toStrictEqual({
      command: "end",
      clientId,
      reason: "unpublished",
      description: "",
    });
    expect(await gateway.call("DELETE", session)).toMatchObject({ status: 410 });
    expect(gateway.media.commands.filter(({ command }) => command === "end")).toHaveLength(1);
  });

  test("that was ended frees its name immediately, and the next publish waits until it is over", async () => {
    const first = await gateway.opened();
    expect((await gateway.call("DELETE", first.session)).status).toBe(200);
    const second = gateway.opened();
    await gateway.customer.received("publish", 2);
    gateway.end(first.clientId);
    expect((await second).clientId).toBeGreaterThan(first.clientId);
    const done = () =>
      gateway.customer.calls("publish_done").map(({ body }) => new URLSearchParams(body).get("clientid"));
    await until(() => done().length > 0);
    expect(done()).toEqual([String(first.clientId)]);
    expect(gateway.media.commands.filter(({ command }) => command === "end")).toHaveLength(1);
  });

  test("cannot be ended without knowing its id", async () => {
    const { session, clientId } = await gateway.opened();
    for (const guess of [NO_SESSION, session.toUpperCase().replace(/^.*\//, "/p/webrtc/"), `/p/webrtc/${clientId}`]) {
      unknownSession(await gateway.call("DELETE", guess));
    }
    expect((await gateway.call("DELETE", session)).status).toBe(200);
  });

  test("cannot be ended when its publish has ended", async () => {
    const { session, clientId } = await gateway.opened();
    gateway.end(clientId, "no_media");
    expect(await gateway.call("DELETE", session)).toMatchObject({ status: 410 });
    expect(gateway.media.commands.filter(({ command }) => command === "end")).toHaveLength(0);
  });

  test("of an ended publish does not end the next one of the name", async () => {
    const first = await gateway.opened();
    gateway.end(first.clientId);
    const second = await gateway.opened();
    expect(await gateway.call("DELETE", first.session)).toMatchObject({ status: 410 });
    expect((await gateway.call("DELETE", second.session)).status).toBe(200);
    expect(gateway.media.commands.filter(({ command }) => command === "end")).toMatchObject([
      { clientId: second.clientId },
    ]);
  });

  test("that the media core does not open is answered 500, and gets exactly one publish_done", async () => {
    gateway.media.allowThrows = true;
    const answer = await gateway.offer(TO_STREAM);
    expectProblem(answer, 500, "internal_error", "Internal error", "Internal error");
    expect(answer.headers.get("location")).toBeNull();
    const { body } = await gateway.customer.received("publish_done");
    const clientId = Number(new URLSearchParams(body).get("clientid"));
    // The core reports the end too.
    gateway.end(clientId, "internal_error");
    gateway.media.allowThrows = false;
    const next = await gateway.opened();
    gateway.end(next.clientId);
    await gateway.customer.received("publish_done", 2);
    const done = gateway.customer.calls("publish_done").map((call) => new URLSearchParams(call.body).get("clientid"));
    expect(done).toStrictEqual([String(clientId), String(next.clientId)]);
  });

  test("leaves neither its id, nor a query, nor a token in the log", async () => {
    const ingesturl = "rtmp://ingest.example/live";
    const { token } = await gateway.tokens.issue({
      streamname: `${STREAM}?passcode=s3cret`,
      ingesturl,
      exp: null,
      nbf: null,
      org: null,
    });
    const authorization = `Bearer ${token}`;
    const { session, clientId } = await gateway.opened("trace=query-marker", { headers: { authorization } });
    await gateway.call("GET", `${session}?passcode=s3cret`);
    await gateway.call("PUT", session);
    await gateway.call("DELETE", session);
    await gateway.call("DELETE", session);
    gateway.end(clientId);
    await gateway.customer.received("publish_done");
    await gateway.opened(`${TO_OURSELVES}&stream_name=${STREAM}%3Fpasscode%3Ds3cret`);
    await gateway.offer(`${TO_OURSELVES}&stream_name=${STREAM}%3Fpasscode%3Ds3cret`);
    const log = gateway.log();
    expect(log).toContain(`"clientId":${clientId}`);
    for (const secret of [session.split("/").at(-1), "query-marker", "s3cret", token.split(".")[2], "offer-marker"]) {
      expect(log).not.toContain(secret);
    }
  });
});
