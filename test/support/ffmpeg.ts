// ffmpeg as broadcaster and player, ffprobe to check streams.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, run, start, until } from "./child.ts";

/** One packet as a demuxer returns it. */
export interface Packet {
  readonly track: "video" | "audio";
  /** Decode timestamp, ms. */
  readonly dts: number;
  readonly bytes: number;
  readonly isKey: boolean;
  /** Hash of the payload. */
  readonly hash: string;
}

export interface Broadcast extends Child {
  /** The packets that were sent; for a broadcast that ended by itself. */
  sent(): Promise<readonly Packet[]>;
}

/** Publishes a moving test pattern and a tone, 25 frames a second, in real time. */
export function broadcast(
  url: string,
  options: {
    readonly seconds: number;
    readonly gop?: number;
    readonly size?: string;
    /** Makes `sent` available. Without it ffmpeg ends as soon as the server refuses. */
    readonly keepsCopy?: boolean;
    readonly hasSound?: boolean;
    /** Padded to this bitrate, whatever the video needs. */
    readonly videoKbps?: number;
    /** Words to put in front of its command. */
    readonly within?: readonly string[];
  },
): Broadcast {
  const folder = mkdtempSync(join(tmpdir(), "headgate-ffmpeg-"));
  const copy = join(folder, "sent.flv");
  const { seconds, gop = 50, size = "320x180", keepsCopy = false, hasSound = true, videoKbps, within = [] } = options;
  const rate = `${videoKbps}k`;
  const constant = ["-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", rate, "-x264-params", "nal-hrd=cbr"];
  const escaped = url.replace(/[\\'|[\]]/g, "\\$&");
  const [program = "", ...words] = [...within, "ffmpeg"];
  const child = start(program, [
    ...words,
    ...["-nostdin", "-loglevel", "warning", "-re"],
    ...["-f", "lavfi", "-i", `testsrc=size=${size}:rate=25`, "-f", "lavfi", "-i", "sine=sample_rate=48000"],
    ...["-t", String(seconds), "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency"],
    ...["-g", String(gop), "-sc_threshold", "0", "-pix_fmt", "yuv420p", "-c:a", "aac", "-flags", "+global_header"],
    ...(videoKbps === undefined ? [] : constant),
    ...["-map", "0:v", ...(hasSound ? ["-map", "1:a"] : [])],
    ...(keepsCopy ? ["-f", "tee", `[f=flv]${escaped}|[f=flv]${copy}`] : ["-f", "flv", url]),
  ]);
  child.exit.finally(() => setTimeout(() => rmSync(folder, { recursive: true, force: true }), 10_000).unref());
  return { ...child, sent: () => packetsOf(copy) };
}

/** The packets of a file, or of a live stream until it ends. */
export async function packetsOf(source: string): Promise<readonly Packet[]> {
  const fields = "packet=codec_type,dts_time,size,flags,data_hash";
  const args = [
    "-v",
    "error",
    "-show_packets",
    "-show_data_hash",
    "MD5",
    "-show_entries",
    fields,
    "-of",
    "json",
    source,
  ];
  const { packets } = JSON.parse((await run("ffprobe", args)).stdout()) as {
    packets: { codec_type: string; dts_time: string; size: string; flags: string; data_hash: string }[];
  };
  // RTMP's script data appears as a data stream, which is not media.
  const media = packets.filter(({ codec_type }) => ["video", "audio"].includes(codec_type));
  return media.map((packet) => ({
    track: packet.codec_type === "video" ? "video" : "audio",
    dts: Math.round(Number(packet.dts_time) * 1_000),
    bytes: Number(packet.size),
    isKey: packet.flags.includes("K"),
    hash: packet.data_hash,
  }));
}

/** A decoder's complaints; empty if all video and audio decodes. `opening`: options for opening the file. */
export async function decodeComplaints(file: string, opening: readonly string[] = []): Promise<string> {
  // Frame timing as it is: with a constant rate ffmpeg would complain about a camera with unevenly spaced frames.
  const asTheyCome = ["-fps_mode", "passthrough", "-enc_time_base", "-1"];
  const decoder = await run("ffmpeg", [
    "-nostdin",
    "-v",
    "repeat+warning",
    ...opening,
    "-i",
    file,
    ...asTheyCome,
    "-f",
    "null",
    "-",
  ]);
  return decoder.stderr();
}

/** How long one ffprobe may look for data, ms: if it found no data stream while opening, it would read until the
 *  broadcast ends. */
const DATA_LIMIT_MS = 6_000;

/** Plays until data with this word arrives. ffprobe only shows streams that it found while opening, and data becomes
 *  a stream when it arrives: if it is sent repeatedly, ffprobe opens at the right moment sooner or later. */
export async function showsData(url: string, word: string): Promise<void> {
  const shown = ["-read_intervals", "%+2", "-select_streams", "s", "-show_packets", "-show_data", "-of", "json"];
  await until("data", async () => {
    const probe = start("ffprobe", ["-v", "error", ...shown, url], { timeout: DATA_LIMIT_MS });
    await probe.exit;
    const text = probe.stdout().replaceAll(/[^!-~]/g, "");
    return text.includes(word);
  });
}
