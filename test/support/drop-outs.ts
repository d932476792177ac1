// Drop-outs of broadcasters as upstreams see them: an encoder is killed or falls silent, and another one takes its
// place some seconds later.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, start, until } from "./child.ts";
import { broadcast, decodeComplaints, packetsOf } from "./ffmpeg.ts";
import { freePort } from "./free-port.ts";
import type { Headgate } from "./headgate.ts";
import { isMonotonic, ofTrack } from "./judge.ts";
import type { NginxRtmp } from "./nginx-rtmp.ts";
import { pause } from "./pause.ts";

/** `killed`: kill -9, the connection closes; `silent`: the connection stays open without data (SIGSTOP). */
export type DropOut = "killed" | "silent";

export interface Session {
  readonly client_id: number;
  readonly streamname: string;
  readonly timestamp_ms: number;
  readonly bytes_in: number;
  readonly continues: number | null;
  readonly upstreams: readonly { readonly state: string; readonly reconnects: number; readonly label: string | null }[];
}

export async function sessionOf(headgate: Headgate, name: string): Promise<Session | undefined> {
  const sessions = (await headgate.call("GET", "/session")) as unknown as Session[];
  return sessions.find(({ streamname }) => streamname === name);
}

/** Between two looks at a session, ms: within the rate limit of a key. */
export const LOOK_EVERY_MS = 250;

/** Waits until `ms` more of a running publish have arrived, by its own clock. */
export async function mediaPasses(
  headgate: Headgate,
  { client_id }: Pick<Session, "client_id">,
  ms: number,
): Promise<void> {
  let from: number | null = null;
  await until(
    `${ms} ms of publish ${client_id}`,
    async () => {
      const { timestamp_ms } = (await headgate.call("GET", `/session/${client_id}`)) as unknown as Session;
      from ??= timestamp_ms;
      return timestamp_ms >= from + ms;
    },
    ms + 60_000,
    LOOK_EVERY_MS,
  );
}

/** An encoder with another publish than `before`, which has sent media; it retries while the name is taken.
 *  `publish` starts another program than ffmpeg. */
export async function encoderOf(
  headgate: Headgate,
  name: string,
  options: { readonly before?: number; readonly size?: string; readonly publish?: () => Child } = {},
): Promise<{ readonly encoder: Child; readonly session: Session }> {
  const { publish, ...encoding } = options;
  const encode = publish ?? (() => broadcast(`${headgate.rtmp}/${name}`, { seconds: 600, gop: 25, ...encoding }));
  let encoder = encode();
  let isOver = false;
  const watch = (child: Child) => void child.exit.then(() => (isOver = encoder === child));
  watch(encoder);
  const session = await until(
    `${name} is published`,
    async () => {
      if (isOver) {
        isOver = false;
        encoder = encode();
        watch(encoder);
      }
      const found = await sessionOf(headgate, name);
      return found !== undefined && found.client_id !== options.before && found.timestamp_ms > 0 ? found : null;
    },
    60_000,
  );
  return { encoder, session };
}

/** ffmpeg as upstream: accepts one connection and records what it receives. */
export async function startFfmpegUpstream(): Promise<{
  readonly url: string;
  readonly recording: string;
  readonly process: Child;
  remove(): void;
}> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-upstream-"));
  const recording = join(folder, "taken.flv");
  const url = `rtmp://127.0.0.1:${await freePort()}/live`;
  const taking = ["-listen", "1", "-i", `${url}/taken`, "-map", "0:v", "-map", "0:a", "-c", "copy", recording];
  const process = start("ffmpeg", ["-nostdin", "-loglevel", "warning", ...taking]);
  const remove = () => {
    process.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: `${url}/taken`, recording, process, remove };
}

/** Nothing comes from a broadcaster for so long. */
export const gap = (ms: number): Promise<void> => pause(ms); // its length is what is tested

/** Drops a running encoder and starts another one after `gapMs`. */
export async function dropOut(
  headgate: Headgate,
  name: string,
  running: { readonly encoder: Child; readonly session: Session },
  how: { readonly kind: DropOut; readonly gapMs: number; readonly size?: string },
): Promise<{ readonly encoder: Child; readonly session: Session }> {
  const { encoder, session } = running;
  encoder.kill(how.kind === "killed" ? "SIGKILL" : "SIGSTOP");
  await gap(how.gapMs);
  const next = await encoderOf(headgate, name, { before: session.client_id, ...(how.size && { size: how.size }) });
  encoder.kill("SIGKILL");
  return next;
}

/** How often a name was published at the upstream. */
export function publishesAt(upstream: NginxRtmp, name: string): number {
  return [...upstream.log().matchAll(/ publish: name='([^']*)'/g)].filter((line) => line[1] === name).length;
}

/** What is wrong with a recording, and the longest gap in its audio, ms. */
export async function judgeRecording(file: string): Promise<{
  readonly isMonotonic: boolean;
  readonly complaints: string;
  readonly audioHoleMs: number;
  readonly videoHoleMs: number;
}> {
  const packets = await packetsOf(file);
  const hole = (track: "video" | "audio") => {
    const times = ofTrack(packets, track).map(({ dts }) => dts);
    return Math.max(0, ...times.slice(1).map((time, at) => time - (times[at] ?? 0)));
  };
  // Without the demuxer's parser, which only knows the first decoder configuration: the decoder gets each new one.
  const complaints = await decodeComplaints(file, ["-fflags", "+nofillin+noparse"]);
  return { isMonotonic: isMonotonic(packets), complaints, audioHoleMs: hole("audio"), videoHoleMs: hole("video") };
}
