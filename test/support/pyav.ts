// FFmpeg 8 as player and checker, through PyAV: it supports Enhanced RTMP and reports every packet.
import { providePython } from "../../scripts/python.mjs";
import { type Child, run, start } from "./child.ts";
import type { Packet } from "./ffmpeg.ts";

export interface JudgedPacket extends Packet {
  /** Presentation timestamp minus decode timestamp, ms. */
  readonly compositionMs: number;
}

export interface Judged {
  readonly packets: readonly JudgedPacket[];
  /** Number of decoded video frames of each size. */
  readonly pictures: Readonly<Record<string, number>>;
  /** Messages of demuxer and decoders. */
  readonly complaints: readonly string[];
  /** Codec of each track, by FFmpeg's name. */
  readonly codecs: Readonly<Record<string, string>>;
}

let path: string | null = null;

/** The Python with the pinned packages. */
export function python(): string {
  path ??= providePython();
  return path;
}

/** Checks a file. */
export async function judge(file: string): Promise<Judged> {
  return parse(await run(python(), ["test/fixtures/judge.py", file]));
}

/** A player that waits until the stream is live and reads it to its end. */
export function watch(url: string, waitS: number): { readonly seen: Promise<Judged>; stop(): void } {
  const child = start(python(), ["test/fixtures/judge.py", url, String(waitS)]);
  const seen = child.exit.then((code) => {
    if (code !== 0) throw new Error(`the player ended with ${code}: ${child.stderr().slice(-500)}`);
    return parse(child);
  });
  seen.catch(() => {});
  return { seen, stop: () => child.kill("SIGKILL") };
}

function parse(child: Child): Judged {
  type Line = [track: Packet["track"], dts: number, composition: number, bytes: number, isKey: boolean, hash: string];
  const said = JSON.parse(child.stdout()) as Omit<Judged, "packets"> & { packets: Line[] };
  const packets = said.packets.map(([track, dts, compositionMs, bytes, isKey, hash]) => ({
    ...{ track, dts, compositionMs, bytes, isKey, hash },
  }));
  return { ...said, packets };
}
