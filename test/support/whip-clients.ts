// WHIP clients that are programs: FFmpeg's own muxer, aiortc, GStreamer, werift, Pion. None shares code with us.
import { providePionWhip } from "../../scripts/go.mjs";
import { providePython } from "../../scripts/python.mjs";
import { run } from "./child.ts";
import { publishByWerift } from "./werift.ts";

/** GStreamer's bindings are installed for Debian's Python. */
const SYSTEM_PYTHON = "/usr/bin/python3";

export interface WhipClient {
  readonly name: string;
  /** Publishes a moving pattern and a tone to a WHIP URL for some seconds, then ends its session; fails if it
   *  cannot. */
  publish(url: string, seconds: number, size: string): Promise<unknown>;
}

/** What a client may need besides its seconds, ms: a program that hangs is stopped and named. */
const SLACK_MS = 45_000;

/** A program to which the URL, the seconds, the size and `oddity` are added as words. */
const client =
  (program: () => readonly [string, ...string[]], ...oddity: readonly string[]): WhipClient["publish"] =>
  (url, seconds, size) => {
    const [command, ...words] = program();
    return run(command, [...words, url, String(seconds), size, ...oddity], { timeout: seconds * 1_000 + SLACK_MS });
  };

const script = (python: () => string, file: string) => (): [string, string] => [python(), `test/fixtures/${file}`];

/** Pion, with an oddity of test/fixtures/pion-whip/oddities.go. */
export const publishByPion = (...oddity: readonly string[]) => client(() => [providePionWhip()], ...oddity);
/** aiortc, with an oddity of test/fixtures/aiortc-whip.py. */
export const publishByAiortc = (...oddity: readonly string[]) =>
  client(script(providePython, "aiortc-whip.py"), ...oddity);

export const whipClients: readonly WhipClient[] = [
  { name: "FFmpeg 8", publish: client(script(providePython, "ffmpeg-whip.py")) },
  { name: "aiortc", publish: publishByAiortc() },
  { name: "GStreamer's webrtcbin", publish: client(script(() => SYSTEM_PYTHON, "gstreamer-whip.py")) },
  { name: "werift, fed by ffmpeg", publish: publishByWerift },
  { name: "Pion", publish: publishByPion() },
];
