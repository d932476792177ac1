// The log lines at level debug of an admission and of a WHIP offer.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { summaryOf } from "../../ts/publish/whip/sdp-summary.ts";
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
  test("is logged with what was offered and answered, or why it was refused", async () => {
    const body = offerOf("chromium-156");
    const { clientId } = await gateway.opened(TO_STREAM, { body });
    const [line] = lines("WHIP offer").slice(-1);
    expect(line).toMatchObject({ level: 20, clientId, organisation: "org1", offered: summaryOf(body) });
    expect(line?.answered).toEqual({ media: [], candidates: {} });
    await gateway.offer(TO_STREAM, { body });
    expect(lines("WHIP offer").at(-1)).toMatchObject({ refused: "already_live", offered: summaryOf(body) });
    await gateway.offer(TO_STREAM, { body: "nothing" });
    expect(lines("WHIP offer").at(-1)).toMatchObject({ refused: "offer_malformed", offered: { media: [] } });
    gateway.end(clientId);
    for (const secret of [/ice-ufrag:(\S+)/, /ice-pwd:(\S+)/, /fingerprint:\S+ (\S+)/]) {
      expect(gateway.log()).not.toContain(secret.exec(body)?.[1]);
    }
  });
});

describe("the summary of an SDP", () => {
  test("contains media, directions, codecs with profiles, and kinds of candidates", () => {
    const sdp = [
      "v=0",
      "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "a=rtpmap:111 opus/48000/2",
      "a=sendonly",
      "a=candidate:1 1 udp 2122260223 192.0.2.7 54321 typ host generation 0",
      "a=candidate:2 1 UDP 1686052607 198.51.100.9 54321 typ srflx raddr 192.0.2.7 rport 54321",
      "a=candidate:3 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active",
      "a=candidate:4 1 udp 1518280447 192.0.2.7 9 typ s3cret",
      "m=video 0 UDP/TLS/RTP/SAVPF 96 97",
      "a=rtpmap:96 H264/90000",
      "a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
      "a=rtpmap:97 s3cret of somebody/90000",
      "a=inactive",
    ].join("\r\n");
    expect(summaryOf(sdp)).toEqual({
      media: [
        { kind: "audio", isOff: false, direction: "sendonly", codecs: ["opus/48000/2"] },
        { kind: "video", isOff: true, direction: "inactive", codecs: ["H264/90000 42e01f"] },
      ],
      candidates: { "host udp": 1, "srflx udp": 1, "host tcp": 1, "other udp": 1 },
    });
  });

  test.each(["chromium-156", "firefox-153", "gstreamer-1.22", "ffmpeg-8.1"])(
    "contains H.264 and Opus for %s",
    (name) => {
      const { media } = summaryOf(offerOf(name));
      const codecs = (kind: string) => media.find((section) => section.kind === kind)?.codecs.join();
      expect(codecs("video")).toMatch(/H264\/90000 [0-9a-f]{6}/i);
      expect(codecs("audio")).toMatch(/opus\/48000\/2/i);
    },
  );

  test("is bounded for any input", () => {
    const { media } = summaryOf(`m=audio 9 x\n${"a=rtpmap:1 x/1\n".repeat(200_000)}${"m=video 9 x\n".repeat(100)}`);
    expect(media).toEqual([{ kind: "audio", isOff: false, direction: "sendrecv", codecs: ["x/1"] }]);
    expect(summaryOf("m=video 9 x\n".repeat(100)).media).toHaveLength(16);
  });
});
