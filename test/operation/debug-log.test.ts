// The log lines at level debug of an admission and of a WHIP offer.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OfferSummary } from "../../ts/media.ts";
import { openWhipGateway, TO_OURSELVES, TO_STREAM, type WhipGateway } from "../support/whip-gateway.ts";

const MS = expect.any(Number);
const offerOf = (name: string) => readFileSync(`test/fixtures/offers/${name}.sdp`, "utf8");

let gateway: WhipGateway;

beforeAll(async () => {
  gateway = await openWhipGateway();
});
afterAll(() => gateway.close());

const lines = (msg: string): Record<string, unknown>[] =>
  gateway
    .log()
    .split("\n")
    .filter((line) => line.includes(`"msg":"${msg}"`))
    .map((line) => JSON.parse(line));

describe("an admission", () => {
  const decided = () => lines("publish request decided").at(-1);

  test("that allows is logged once, with the time of each step, also when the publish ends later", async () => {
    const { session, clientId } = await gateway.opened();
    const steps = { stream: MS, settings: MS, webhook: MS, intent: MS, live: MS };
    const about = { level: 20, clientId, organisation: "org1", outcome: "allowed", protocol: "whip", tookMs: MS };
    expect(decided()).toMatchObject(about);
    expect(decided()?.steps).toStrictEqual(steps);
    await gateway.call("DELETE", session);
    gateway.end(clientId);
    await gateway.customer.received("publish_done");
    expect(lines("publish request decided")).toHaveLength(1);
  });

  test("that denies is logged with the steps it reached", async () => {
    gateway.customer.answer({ status: 403 });
    await gateway.offer(TO_STREAM);
    expect(decided()).toMatchObject({ outcome: "denied", cause: "rejected_by_customer", organisation: "org1" });
    expect(decided()).toMatchObject({ steps: { stream: MS, settings: MS, webhook: MS } });
    // The steps are sequential: in total they are no more than the whole, except for rounding to tenths.
    const { steps, tookMs } = decided() as { steps: Record<"stream" | "settings" | "webhook", number>; tookMs: number };
    expect(steps.stream + steps.settings + steps.webhook).toBeLessThanOrEqual(tookMs + 0.5);
    await gateway.offer(`${TO_OURSELVES}&stream_name=nowhere`);
    expect(decided()).toMatchObject({ outcome: "denied", cause: "unknown_stream", steps: { stream: MS } });
    expect(decided()).not.toHaveProperty("organisation");
    gateway.customer.answer({ status: 200 });
  });
});

describe("a WHIP offer", () => {
  const offered: Omit<OfferSummary, "agreed"> = {
    media: [{ kind: "video", isOff: false, direction: "sendonly", codecs: ["H264/90000 42e01f", "VP8/90000"] }],
    candidates: ["2 host udp"],
  };
  const agreed: OfferSummary["agreed"] = [
    { kind: "video", isOff: false, direction: "recvonly", codecs: ["H264/90000 42e01f"] },
  ];

  test("is logged with what was offered and answered, or why it was refused", async () => {
    const body = offerOf("chromium-156");
    gateway.media.summary = { ...offered, agreed };
    const { clientId } = await gateway.opened(TO_STREAM, { body });
    const [line] = lines("WHIP offer").slice(-1);
    expect(line).toMatchObject({ level: 20, clientId, organisation: "org1", offered, answered: agreed });
    await gateway.offer(TO_STREAM, { body });
    expect(lines("WHIP offer").at(-1)).toMatchObject({ refused: "already_live", offered });
    gateway.media.summary = { ...offered, agreed: [] };
    await gateway.offer(TO_STREAM, { body: "nothing" });
    expect(lines("WHIP offer").at(-1)).toMatchObject({ refused: "offer_malformed", offered });
    gateway.end(clientId);
    for (const secret of [/ice-ufrag:(\S+)/, /ice-pwd:(\S+)/, /fingerprint:\S+ (\S+)/]) {
      expect(gateway.log()).not.toContain(secret.exec(body)?.[1]);
    }
  });
});
