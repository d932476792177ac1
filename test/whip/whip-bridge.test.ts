// The bridge to the media core for running WHIP publishes: fragments, restarts, diagnostics. The real core.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Media, startMedia } from "../../ts/media.ts";
import { until } from "../support/child.ts";

const OFFER = readFileSync("crates/whip/src/sdp/fixtures/chromium_156.sdp", "utf8");
const credential = (name: string) => new RegExp(`^a=${name}:.*$`, "m").exec(OFFER)?.[0].trim() ?? "";
const CURRENT = `${credential("ice-ufrag")}\r\n${credential("ice-pwd")}\r\n`;
const RENEWED = "a=ice-ufrag:newer\r\na=ice-pwd:newer-newer-newer-newer\r\n";

let media: Media;

beforeAll(() => {
  media = startMedia(
    {
      rtmpHost: "127.0.0.1",
      rtmpPort: 0,
      rtmpTrustedProxies: [],
      rtmpTls: null,
      upstreamCa: null,
      mediaHost: "127.0.0.1",
      mediaPort: 0,
      publicAddresses: ["127.0.0.1"],
      workers: 1,
      audioWorkers: 1,
      gopCache: true,
      pushSilence: false,
      captures: false,
      rtmpConnections: 0,
      rtmpConnectionsPerAddress: 0,
    },
    () => {},
    (error) => {
      throw error;
    },
  );
});
afterAll(async () => await media?.stop());

function open(clientId: number): string {
  const { result } = media.parseOffer(OFFER);
  if (result.outcome === "refused") throw new Error(result.detail);
  return media.openWhip({
    clientId,
    name: `cam${clientId}`,
    offer: result.offer,
    upstreams: [],
    ownUpstream: null,
    stereo: false,
    startBitrateKbps: 2_000,
    maxBitrateKbps: 6_000,
    audioBitrate: 128_000,
    connectInfo: null,
  });
}

test("an offer is read with what people are shown of it and of the answer, also when it is refused", () => {
  const { summary } = media.parseOffer(OFFER);
  const audio = { kind: "audio", isOff: false, direction: "sendonly" };
  expect(summary.media).toMatchObject([audio, { kind: "video", isOff: false, direction: "sendonly" }]);
  expect(summary.media[0]?.codecs[0]).toBe("opus/48000/2");
  expect(summary.media[1]?.codecs).toContain("H264/90000 42e01f");
  expect(summary.agreed).toStrictEqual([
    { kind: "audio", isOff: false, direction: "recvonly", codecs: ["opus/48000/2"] },
    { kind: "video", isOff: false, direction: "recvonly", codecs: ["H264/90000 42001f", "rtx/90000"] },
  ]);
  const refused = media.parseOffer(OFFER.replace(/^a=ice-pwd:.*$/gm, "a=ice-pwd:short"));
  expect(refused).toMatchObject({ summary: { media: summary.media, agreed: [] }, result: { outcome: "refused" } });
  expect(media.parseOffer("nothing").summary).toStrictEqual({ media: [], candidates: [], agreed: [] });
});

describe("a trickled fragment", () => {
  test("is validated by itself", () => {
    expect(media.refuseFragment(CURRENT)).toBeNull();
    const detail = "The fragment is not valid";
    const refused = { outcome: "refused", code: "fragment_malformed", status: 400, detail };
    expect(media.refuseFragment("hello")).toStrictEqual(refused);
  });

  test("adds candidates with the same credentials, restarts with new ones, and is refused with half of each", () => {
    const answer = open(1);
    expect(media.patchWhip(1, `${CURRENT}a=candidate:1 1 udp 1 4f2c.local 5 typ host\r\n`)).toStrictEqual({
      outcome: "added",
    });
    const half = `${credential("ice-ufrag")}\r\na=ice-pwd:newer-newer-newer-newer\r\n`;
    expect(media.patchWhip(1, half)).toMatchObject({ outcome: "refused", code: "fragment_half_restart", status: 400 });
    const restarted = media.patchWhip(1, RENEWED);
    if (restarted.outcome !== "restarted") throw new Error(restarted.outcome);
    const lines = restarted.fragment.split("\r\n");
    expect(lines).toContain("a=ice-lite");
    const candidates = (text: string) => text.split("\r\n").filter((line) => line.startsWith("a=candidate:"));
    expect(candidates(restarted.fragment)).toStrictEqual([...new Set(candidates(answer))]);
    for (const name of ["ice-ufrag", "ice-pwd"]) {
      expect(answer).not.toContain(lines.find((line) => line.startsWith(`a=${name}:`)));
    }
    expect(media.patchWhip(1, CURRENT)).toMatchObject({ outcome: "refused", code: "too_many_requests", status: 429 });
    expect(media.patchWhip(1, RENEWED)).toStrictEqual({ outcome: "added" });
  });

  test("of a publish that does not run is refused", () => {
    expect(media.patchWhip(99, CURRENT)).toMatchObject({ outcome: "refused", code: "unknown_session", status: 404 });
    expect(media.sendWhipData(99, new Uint8Array([5]))).toBe(false);
  });
});

test("the answer names UDP first, then TCP on the same port", () => {
  const [port] = media.mediaPorts;
  const candidates = open(2)
    .split("\r\n")
    .filter((line) => line.startsWith("a=candidate:"));
  expect(candidates.slice(0, 2)).toStrictEqual([
    `a=candidate:1 1 udp 2130706431 127.0.0.1 ${port} typ host`,
    `a=candidate:2 1 tcp 1772093439 127.0.0.1 ${port} typ host tcptype passive`,
  ]);
});

test("diagnostics contain what is missing, and nothing about publishes that do not run", async () => {
  open(3);
  const told = await until("diagnostics", () => media.whipDiagnostics(3));
  expect(told).toMatchObject({ isConnected: false, dtlsRole: "server", srtp: "", rejected: 0 });
  expect(told.video).toMatchObject({ codec: "H.264", width: 0, height: 0, layer: "", track: { packets: 0, lost: 0 } });
  expect(told.audio).toMatchObject({ codec: "Opus", channels: 0 });
  expect(told.problems).toStrictEqual([
    expect.stringMatching(/^not connected for \d+ s: check that UDP or TCP to the media port is open$/),
  ]);
  expect(media.isWhipConnected(3)).toBe(false);
  media.end(3, "kicked", "");
  await until("the end", () => media.whipDiagnostics(3) === null || undefined);
  expect(media.whipDiagnostics(99)).toBeNull();
});
