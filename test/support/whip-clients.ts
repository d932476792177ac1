// WHIP clients that are programs: FFmpeg's own muxer, aiortc, GStreamer, werift. None shares code with us.
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

const script =
  (python: () => string, file: string): WhipClient["publish"] =>
  (url, seconds, size) =>
    run(python(), [`test/fixtures/${file}`, url, String(seconds), size], { timeout: seconds * 1_000 + SLACK_MS });

export const whipClients: readonly WhipClient[] = [
  { name: "FFmpeg 8", publish: script(providePython, "ffmpeg-whip.py") },
  { name: "aiortc", publish: script(providePython, "aiortc-whip.py") },
  { name: "GStreamer's webrtcbin", publish: script(() => SYSTEM_PYTHON, "gstreamer-whip.py") },
  { name: "werift, fed by ffmpeg", publish: publishByWerift },
];
