// FFmpeg 8 as player and judge, by PyAV: it knows Enhanced RTMP, and what it sees it says packet by packet.
import { providePython } from "../../scripts/python.mjs";
import { type Child, run, start } from "./child.ts";
import type { Packet } from "./ffmpeg.ts";

export interface JudgedPacket extends Packet {
  /** Presentation behind decode time, ms. */
  readonly compositionMs: number;
}

export interface Judged {
  readonly packets: readonly JudgedPacket[];
  /** How many pictures of each size were decoded. */
  readonly pictures: Readonly<Record<string, number>>;
  /** What demuxer and decoders said. */
  readonly complaints: readonly string[];
  /** Codec of each track, by FFmpeg's name. */
  readonly codecs: Readonly<Record<string, string>>;
}

let path: string | null = null;

/** The Python that has the pinned packages. */
export function python(): string {
  path ??= providePython();
  return path;
}

/** Judges a file. */
export async function judge(file: string): Promise<Judged> {
  return parse(await run(python(), ["test/fixtures/judge.py", file]));
}

/** A player that waits until the stream is live and watches it to its end. */
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
