// A recording that is still being written, read to measure in real time when its first video frame arrives, how many
// bits of video arrive per second, and how far audio and video are apart.
import { readFileSync } from "node:fs";
import { until } from "./child.ts";

const FILE_HEADER_BYTES = 13;
const TAG_HEADER_BYTES = 11;
/** PreviousTagSize. */
const TAG_END_BYTES = 4;
const AUDIO = 8;
const VIDEO = 9;
/** AVCPacketType of a frame; 0 is a decoder configuration. */
const FRAME = 1;

interface Tag {
  readonly type: number;
  /** Of its header and its body in the file. */
  readonly start: number;
  readonly body: number;
  readonly size: number;
}

/** The complete tags of a file (FLV 10.1, E.4). */
function* tagsOf(file: Buffer): Generator<Tag> {
  for (let start = FILE_HEADER_BYTES; start + TAG_HEADER_BYTES + 1 < file.length; ) {
    const size = file.readUIntBE(start + 1, 3);
    const body = start + TAG_HEADER_BYTES;
    yield { type: file[start] ?? 0, start, body, size };
    start = body + size + TAG_END_BYTES;
  }
}

/** Bytes of the video frames in a file so far; 0 without a file. */
export function videoBytes(path: string | null): number {
  if (path === null) return 0;
  const file = readFileSync(path);
  let bytes = 0;
  for (const { type, body, size } of tagsOf(file)) if (type === VIDEO && file[body + 1] === FRAME) bytes += size;
  return bytes;
}

/** By how much the audio is ahead of the video in what arrives during `durationMs`, ms: the median, so that a browser
 *  that has no time for a few frames changes nothing. */
export async function audioAhead(path: string, durationMs: number): Promise<number> {
  const seen: number[] = [];
  const ends = performance.now() + durationMs;
  const look = () => {
    const file = readFileSync(path);
    const last = new Map<number, number>();
    for (const { type, start } of tagsOf(file)) last.set(type, file.readUIntBE(start + 4, 3));
    seen.push((last.get(AUDIO) ?? Number.NaN) - (last.get(VIDEO) ?? Number.NaN));
    return performance.now() >= ends;
  };
  await until("it has been watched for so long", look, durationMs + 60_000, 50);
  return seen.sort((a, b) => a - b)[seen.length >> 1] ?? Number.NaN;
}

/** Resolves with `performance.now()` when the first video frame is in the file. */
export async function firstVideoFrame(path: () => string | null, limitMs = 15_000): Promise<number> {
  await until("a video frame", () => videoBytes(path()) > 0, limitMs, 5);
  return performance.now();
}

/** Waits until a second's video, in kbit/s, is as wanted; returns how long that took, ms, and the rate. */
export async function rateBecomes(
  path: string,
  isWanted: (kbps: number) => boolean,
  limitMs: number,
): Promise<{ readonly ms: number; readonly kbps: number }> {
  const began = performance.now();
  let before = { bytes: videoBytes(path), at: began };
  const look = () => {
    const now = { bytes: videoBytes(path), at: performance.now() };
    if (now.at < before.at + 1_000) return null;
    const rate = ((now.bytes - before.bytes) * 8) / (now.at - before.at);
    before = now;
    return isWanted(rate) ? rate : null;
  };
  const kbps = await until("the video's rate", look, limitMs, 100);
  return { ms: Math.round(performance.now() - began), kbps: Math.round(kbps) };
}
