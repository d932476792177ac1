// How Chromium spreads the packets of a picture over time. The WHIP bench repeats this from a recording in
// crates/bench/recordings/chromium-720p.txt.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { run, until } from "../support/child.ts";
import { startChromium } from "../support/chromium.ts";
import { mediaPasses } from "../support/drop-outs.ts";
import { startHeadgate } from "../support/headgate.ts";
import { inWholeRun } from "../support/whole-run.ts";

/** Limit for all tracks together, as an operator sets it, kbit/s. */
const LIMIT_KBPS = 2_500;
/** The service polls for packets every two milliseconds: packets that are closer together left at the same
 *  time. */
const AT_ONCE_US = 3_000;
/** How long the encoder takes to settle on its rate, s; and how long is recorded after that. */
const SETTLED_S = 10;
const RECORDED_S = 8;
/** An RTP or RTCP packet in a capture file (crates/capture). */
const INPUT = 1;

interface Arrival {
  readonly atUs: number;
  readonly packet: Buffer;
}

/** A picture as it arrived: whether it can be decoded alone, and each packet's delay and payload bytes. */
interface Picture {
  readonly isKey: boolean;
  readonly packets: readonly (readonly [delayUs: number, bytes: number])[];
}

inWholeRun(
  "a large picture leaves in bursts some milliseconds apart, as in the recording of the bench",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "headgate-packets-"));
    const headgate = await startHeadgate({ env: { HEADGATE_CAPTURE_DIRECTORY: folder } });
    const chromium = await startChromium();
    try {
      await headgate.call("PUT", "/organisation/settings", { max_bitrate_kbps: LIMIT_KBPS });
      const page = await chromium.open(headgate.whip(await headgate.newStream()), { keep: "resolution" });
      expect(await page.start()).toMatchObject({ status: 201 });
      const list = async () => (await headgate.call("GET", "/session")) as unknown as { client_id: number }[];
      const session = await until("the session", async () => (await list())[0]);
      await mediaPasses(headgate, session, SETTLED_S * 1_000);
      const file = join(folder, "chromium.capture");
      const words = [
        "capture",
        String(session.client_id),
        file,
        "--url",
        headgate.http,
        "--seconds",
        String(RECORDED_S),
      ];
      const env = { PATH: process.env.PATH, HEADGATE_API_KEY: headgate.apiKey };
      await run(process.execPath, ["scripts/headgate.mjs", ...words], { env });
      const found = picturesOf(readFileSync(file));
      const from = found.findIndex(({ isKey }) => isKey);
      const pictures = found.slice(
        from,
        found.findLastIndex(({ isKey }) => isKey),
      );
      if (process.env.RECORDING) writeFileSync(process.env.RECORDING, pictures.map(lineOf).join(""));
      const recorded = readFileSync("crates/bench/recordings/chromium-720p.txt", "utf8").trim().split("\n");
      // Small pictures leave in one burst; the part of large ones that exceeds the pacer's burst follows some
      // 40 ms later.
      const spreads = (delays: readonly number[]) => delays.some((delay) => delay > 20_000 && delay < 100_000);
      const delaysOf = (line: string) => line.split(" ").slice(1).map(Number.parseFloat);
      expect(pictures.some(({ packets }) => spreads(packets.map(([delay]) => delay)))).toBe(true);
      expect(recorded.map(delaysOf).some(spreads)).toBe(true);
      const atOnce = pictures.filter(({ packets }) => packets.every(([delay]) => delay < AT_ONCE_US));
      expect(atOnce.length / pictures.length).toBeGreaterThan(0.5);
    } finally {
      await chromium.close();
      await headgate.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  120_000,
);

/** `<K or P> <delay in µs>:<bytes> …` */
function lineOf({ isKey, packets }: Picture): string {
  return `${isKey ? "K" : "P"} ${packets.map(([delay, bytes]) => `${delay < AT_ONCE_US ? 0 : delay}:${bytes}`).join(" ")}\n`;
}

function picturesOf(capture: Buffer): readonly Picture[] {
  const byTime = new Map<number, Arrival[]>();
  for (const arrival of rtpOf(capture)) {
    const rtpTime = arrival.packet.readUInt32BE(4);
    byTime.set(rtpTime, [...(byTime.get(rtpTime) ?? []), arrival]);
  }
  return [...byTime.values()].map((arrivals) => {
    const atUs = arrivals[0]?.atUs ?? 0;
    const payloads = arrivals.map(({ packet }) => packet.subarray(headerBytes(packet)));
    return {
      isKey: payloads.some(isOfKeyframe),
      packets: arrivals.map((each, at) => [each.atUs - atUs, payloads[at]?.length ?? 0] as const),
    };
  });
}

/** Video packets in order of arrival: those of the source that sends the most bytes. */
function rtpOf(capture: Buffer): readonly Arrival[] {
  const sources = new Map<number, { bytes: number; arrivals: Arrival[] }>();
  let at = 10; // magic, version, flags
  const varint = () => {
    let value = 0;
    for (let place = 1; ; place *= 128) {
      const byte = capture[at++] ?? 0;
      value += (byte & 0x7f) * place;
      if (byte < 0x80) return value;
    }
  };
  const header = varint();
  at += header;
  for (let ns = 0; at < capture.length; ) {
    const kind = capture[at++];
    ns += varint();
    const length = varint();
    const packet = capture.subarray(at, at + length);
    at += length;
    const isRtcp = ((packet[1] ?? 0) & 0x7f) >= 64 && ((packet[1] ?? 0) & 0x7f) < 96; // RFC 5761 4
    if (kind !== INPUT || packet.length < 12 || isRtcp) continue;
    const source = sources.get(packet.readUInt32BE(8)) ?? { bytes: 0, arrivals: [] };
    source.bytes += packet.length;
    source.arrivals.push({ atUs: Math.round(ns / 1_000), packet });
    sources.set(packet.readUInt32BE(8), source);
  }
  return [...sources.values()].sort((a, b) => b.bytes - a.bytes)[0]?.arrivals ?? [];
}

/** RFC 3550 5.1, 5.3.1. */
function headerBytes(packet: Buffer): number {
  const sources = 12 + ((packet[0] ?? 0) & 0x0f) * 4;
  return ((packet[0] ?? 0) & 0x10) === 0 ? sources : sources + 4 + packet.readUInt16BE(sources + 2) * 4;
}

/** RFC 6184 5.2: a whole IDR slice, a fragment of one, or one behind parameter sets. */
function isOfKeyframe(payload: Buffer): boolean {
  const type = (payload[0] ?? 0) & 0x1f;
  return type === 5 || type === 7 || type === 24 || (type === 28 && ((payload[1] ?? 0) & 0x1f) === 5);
}
