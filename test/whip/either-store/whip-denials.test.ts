// Who is denied at the WHIP endpoint, and with which answer (P10; W10–W12, W20, W22a, W26).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addStream, STREAM } from "../../support/publishing.ts";
import {
  ENDPOINT,
  expectProblem,
  openWhipGateway,
  TO_OURSELVES,
  TO_STREAM,
  type WhipGateway,
} from "../../support/whip-gateway.ts";

let gateway: WhipGateway;

beforeEach(async () => {
  gateway = await openWhipGateway({ settings: { deadlineMs: 500 } });
});
afterEach(() => gateway.close());

const calls = () => gateway.customer.requests.map(({ call }) => call);
const offerTo = (name: string) => gateway.offer(`${TO_OURSELVES}&stream_name=${name}`);

describe("without asking the customer", () => {
  test.each(["Ab1Cd-00000", STREAM.toLowerCase(), `${STREAM}x`, `live/${STREAM}`])(
    "an unknown stream %s is answered 404",
    async (name) => {
      const answer = await offerTo(name);
      expectProblem(answer, 404, "unknown_stream", "Unknown stream", "Unknown stream");
      expect(calls()).toStrictEqual([]);
    },
  );

  test("a deleted stream is answered like an unknown one", async () => {
    await addStream(gateway.db, "Ab1Cd-gone0", "deleted");
    expectProblem(await offerTo("Ab1Cd-gone0"), 404, "unknown_stream", "Unknown stream", "Unknown stream");
    expect(calls()).toStrictEqual([]);
  });

  test("a locked stream is answered 403", async () => {
    await addStream(gateway.db, "Ab1Cd-lock0", "locked");
    expectProblem(await offerTo("Ab1Cd-lock0"), 403, "locked_stream", "Stream is locked", "Stream is locked");
    expect(calls()).toStrictEqual([]);
  });

  test("a disabled organisation is answered 403", async () => {
    await gateway.db.updateTable("organisation").set({ enabled: 0 }).execute();
    const words = "Organisation is not enabled";
    expectProblem(await gateway.offer(TO_STREAM), 403, "organisation_disabled", words, words);
    expect(calls()).toStrictEqual([]);
  });

  test("a live stream is answered 409, until it has ended", async () => {
    const { clientId } = await gateway.opened();
    const words = "Stream is already live";
    expectProblem(await gateway.offer(TO_STREAM), 409, "already_live", words, words);
    expect(calls()).toStrictEqual(["publish"]);
    gateway.end(clientId);
    expect((await gateway.offer(TO_STREAM)).status).toBe(201);
  });

  test("a stream with a pending publish request is answered 409", async () => {
    let second: Awaited<ReturnType<WhipGateway["offer"]>> | null = null;
    gateway.customer.answer(async () => {
      second ??= await gateway.offer(TO_STREAM);
      return { status: 200 };
    });
    expect((await gateway.offer(TO_STREAM)).status).toBe(201);
    expect(second).toMatchObject({ status: 409 });
    expect(calls()).toStrictEqual(["publish"]);
  });

  test("an offer to a stopping service is answered 503 with Retry-After", async () => {
    await gateway.publishing.drain(0);
    const answer = await gateway.offer(TO_STREAM);
    expectProblem(answer, 503, "stopping", "Service is stopping", "Service is stopping");
    expect(answer.headers.get("retry-after")).toBe("5");
    expect((await gateway.call("GET", ENDPOINT)).status).toBe(204);
    expect(calls()).toStrictEqual([]);
  });
});

describe("the customer's answer", () => {
  afterEach(() => expect(gateway.openings()).toStrictEqual([]));

  const REASONS: readonly [what: string, body: string, detail: string][] = [
    ["its first line", "Passcode is wrong\nsee the manual", "Passcode is wrong"],
    ["standard words without a body", "", "Publish denied"],
  ];

  test.each(REASONS)("of 403 is answered with %s", async (_, body, detail) => {
    gateway.customer.answer({ status: 403, headers: { "content-type": "text/plain" }, body });
    expectProblem(await gateway.offer(TO_STREAM), 403, "rejected_by_customer", "Publish denied", detail);
  });

  test.each([201, 204, 302, 400, 401, 404, 500, 503])("of %i denies without its text", async (status) => {
    const headers = { "content-type": "text/plain", location: "https://customer.example/", "retry-after": "77" };
    gateway.customer.answer({ status, headers, ...(status === 204 ? {} : { body: "words of the customer" }) });
    const answer = await gateway.offer(TO_STREAM);
    expectProblem(answer, 403, "rejected_by_customer", "Publish denied", "Publish denied");
    expect(answer.headers.get("location")).toBeNull();
    expect(answer.headers.get("retry-after")).toBeNull();
    expect(gateway.customer.requests).toHaveLength(1);
  });

  test.each(["hang", "reset"] as const)("that does not come (%s) is answered 504", async (how) => {
    gateway.customer.answer(how);
    const words = "Publish could not be authorised";
    expectProblem(await gateway.offer(TO_STREAM), 504, "customer_unreachable", words, words);
  });

  test("leaves the name free when it is a refusal", async () => {
    gateway.customer.answer(({ call }) => ({ status: call === "publish" ? 403 : 200 }));
    for (const _ of [1, 2]) expect((await gateway.offer(TO_STREAM)).status).toBe(403);
    expect(calls()).toStrictEqual(["publish", "publish"]);
  });

  test("of 200 to a stream that was locked meanwhile opens nothing, and publish_done follows", async () => {
    gateway.customer.answer(async ({ call }) => {
      if (call === "publish") await gateway.db.updateTable("stream").set({ state: "locked" }).execute();
      return { status: 200 };
    });
    const answer = await gateway.offer(TO_STREAM);
    expectProblem(answer, 403, "locked_stream", "Stream is locked", "Stream is locked");
    await gateway.customer.received("publish_done");
  });
});

test("a publish without webhook is opened when the stream exists", async () => {
  await gateway.db.updateTable("organisation").set({ webhook: null }).execute();
  await gateway.opened();
  expect(calls()).toStrictEqual([]);
});

test("a failing store is answered without its error message", async () => {
  await gateway.db.schema.alterTable("stream").renameTo("elsewhere").execute();
  const answer = await gateway.offer(TO_STREAM);
  expectProblem(answer, 503, "store_unavailable", "Temporarily unavailable", "Temporarily unavailable");
});
