// What the publishers of the matrix send: encoded once, then copied, so that many cells fit two cores.
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/child.ts";
import { startsAtKeyframe } from "../support/judge.ts";
import { type Judged, judge, python } from "../support/pyav.ts";
import { joinFlv } from "./flv.ts";

/** Video and audio: avc is H.264 with AAC, opus H.264 with Opus, hevc HEVC with AAC. */
export type Codecs = "avc" | "opus" | "hevc";
export type Kind = "plain" | "no audio" | "no video" | "b-frames" | "sps change";

export interface Source {
  readonly file: string;
  readonly seconds: number;
  readonly kind: Kind;
  readonly codecs: Codecs;
  /** Its content as FFmpeg reads it. */
  readonly content: Judged;
}

const folder = join(import.meta.dirname, "..", "..", ".build", "matrix");
/** Rarely enough that a late subscriber needs the GOP cache, and often enough that the cache contains a whole
 *  GOP. */
const GOP_S = 2;
const FRAMES_PER_SECOND = 25;
const made = new Map<string, Promise<Source>>();

/** The source of this kind; created at the first call, kept in .build for the next run. */
export function source(kind: Kind, codecs: Codecs, seconds: number): Promise<Source> {
  const name = `${kind.replaceAll(" ", "-")}-${codecs}-${seconds}`;
  const known = made.get(name) ?? make(join(folder, `${name}.flv`), kind, codecs, seconds);
  made.set(name, known);
  return known;
}

async function make(file: string, kind: Kind, codecs: Codecs, seconds: number): Promise<Source> {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(file)) {
    // Written elsewhere and moved: another test process may look for it at the same time.
    const draft = `${file}.${process.pid}.flv`;
    if (kind === "sps change") {
      const parts = ["320x180", "256x144"].map((size) => ({ size, path: `${draft}.${size}.flv` }));
      for (const { size, path } of parts) await encode(path, kind, codecs, seconds / 2, size);
      joinFlv(parts[0]?.path ?? "", parts[1]?.path ?? "", draft);
    } else await encode(draft, kind, codecs, seconds, "320x180");
    renameSync(draft, file);
  }
  const content = await judge(file);
  if (kind !== "no video" && !startsAtKeyframe(content.packets)) throw new Error(`${file} does not begin at an IDR`);
  return { file, seconds, kind, codecs, content };
}

async function encode(file: string, kind: Kind, codecs: Codecs, seconds: number, size: string): Promise<void> {
  const picture = ["-f", "lavfi", "-i", `testsrc=size=${size}:rate=${FRAMES_PER_SECOND}`];
  const sound = ["-f", "lavfi", "-i", "sine=sample_rate=48000"];
  const inputs = [...(kind === "no video" ? [] : picture), ...(kind === "no audio" ? [] : sound)];
  const gop = GOP_S * FRAMES_PER_SECOND;
  const tune = kind === "b-frames" ? ["-bf", "2"] : ["-tune", "zerolatency"];
  const hevc = ["-c:v", "libx265", "-x265-params", `keyint=${gop}:min-keyint=${gop}:scenecut=0:log-level=none`];
  const avc = ["-c:v", "libx264", "-g", String(gop), "-sc_threshold", "0"];
  const codec = [...(codecs === "hevc" ? hevc : avc), "-preset", "ultrafast", ...tune, "-pix_fmt", "yuv420p"];
  const audio = codecs === "opus" ? ["-c:a", "libopus"] : ["-c:a", "aac"];
  // FFmpeg 5.1 puts neither Opus nor HEVC into FLV; FFmpeg 8 does. MP4 in between keeps every decode time.
  const target = codecs === "avc" ? file : `${file}.mp4`;
  await run("ffmpeg", [
    ...["-nostdin", "-loglevel", "error", "-y", ...inputs, "-t", String(seconds)],
    ...[...codec, ...audio, "-flags", "+global_header", target],
  ]);
  if (target !== file) await run(python(), ["test/fixtures/publish.py", target, file]);
}
