// A recording that is still being written, read to measure in real time when its first video frame arrives and how many
// bits of video arrive per second.
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "./child.ts";

const FILE_HEADER_BYTES = 13;
const TAG_HEADER_BYTES = 11;
/** PreviousTagSize. */
const TAG_END_BYTES = 4;
const VIDEO = 9;
/** AVCPacketType of a frame; 0 is a decoder configuration. */
const FRAME = 1;

/** Bytes of the video frames in a file so far (FLV 10.1, E.4); 0 without a file. */
export function videoBytes(path: string | null): number {
  if (path === null) return 0;
  const file = readFileSync(path);
  let bytes = 0;
  for (let at = FILE_HEADER_BYTES; at + TAG_HEADER_BYTES + 1 < file.length; ) {
    const size = file.readUIntBE(at + 1, 3);
    const body = at + TAG_HEADER_BYTES;
    if (file[at] === VIDEO && file[body + 1] === FRAME) bytes += size;
    at = body + size + TAG_END_BYTES;
  }
  return bytes;
}

/** Resolves with `performance.now()` when the first video frame is in the file. */
export async function firstVideoFrame(path: () => string | null, limitMs = 15_000): Promise<number> {
  const deadline = performance.now() + limitMs;
  while (videoBytes(path()) === 0) {
    if (performance.now() > deadline) throw new Error("no video frame in time");
    await pause(5);
  }
  return performance.now();
}

/** Waits until a second's video, in kbit/s, is as wanted; returns how long that took, ms, and the rate. */
export async function rateBecomes(
  path: string,
  isWanted: (kbps: number) => boolean,
  limitMs: number,
): Promise<{ readonly ms: number; readonly kbps: number }> {
  const began = performance.now();
  const kbps = await until(
    "the video's rate",
    async () => {
      const before = { bytes: videoBytes(path), at: performance.now() };
      await pause(1_000);
      const rate = ((videoBytes(path) - before.bytes) * 8) / (performance.now() - before.at);
      return isWanted(rate) ? rate : null;
    },
    limitMs,
  );
  return { ms: Math.round(performance.now() - began), kbps: Math.round(kbps) };
}
