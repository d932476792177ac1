// The publishing programs, each started as its users do. What a program cannot do is stated here, with the
// reason.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, start } from "../support/child.ts";
import { startNginxRtmp } from "../support/nginx-rtmp.ts";
import { python } from "../support/pyav.ts";
import type { Condition } from "./conditions.ts";
import { startObs } from "./obs.ts";
import type { Codecs, Source } from "./sources.ts";

/** A program that publishes at the moment. */
export interface Running {
  /** It has sent everything, or was refused and gave up. Never resolves for a program that runs until it is
   *  ended. */
  readonly ended: Promise<unknown>;
  /** Everything it has printed or logged. */
  log(): string;
  /** Ends it, as its user would. */
  stop(): Promise<void>;
}

export interface Publisher {
  readonly name: string;
  readonly codecs: Codecs;
  /** This program sends the source's content byte for byte; otherwise it encodes by itself. */
  readonly copies: boolean;
  /** Sends media without waiting for the server's answer: what arrives before the publish is accepted is
   *  lost. */
  readonly isHasty: boolean;
  /** Gives reordered pictures decode times of its own. */
  readonly remakesClock: boolean;
  /** The text in which it prints or logs the description of a refusal; or what it prints instead. */
  readonly showsRefusal: { readonly description: boolean; readonly pattern: RegExp };
  /** The arguments as it sends them. */
  sends(given: string): string;
  /** Unsupported conditions, with the reason. */
  readonly cannot: Readonly<Record<string, string>>;
  /** Publishes `source` to `url`; the clock of the stream begins at `offsetS`. */
  publish(url: string, source: Source, offsetS: number, condition: Condition): Promise<Running>;
}

/** A program that reads the source, sends it and ends. */
function running(child: Child): Running {
  return {
    ended: child.exit,
    log: () => child.stderr() + child.stdout(),
    async stop() {
      child.kill("SIGTERM");
      await child.exit;
    },
  };
}

const ffmpegArguments = (url: string, source: Source, offsetS: number) => [
  ...["-nostdin", "-loglevel", "info", "-nostats", "-re", "-i", source.file, "-c", "copy"],
  ...["-flvflags", "no_duration_filesize", "-output_ts_offset", String(offsetS), "-f", "flv", url],
];

const asGiven = (given: string) => given;
const copier = { sends: asGiven, copies: true, isHasty: false, remakesClock: false, cannot: {} } as const;

export const ffmpeg: Publisher = {
  ...copier,
  name: "ffmpeg 5.1",
  codecs: "avc",
  showsRefusal: { description: true, pattern: /Server error: .*/ },
  publish: async (url, source, offsetS) => running(start("ffmpeg", ffmpegArguments(url, source, offsetS))),
};

/** GStreamer's FLV muxer generates the clock, which begins at 0. */
const fromZero = "flvmux counts from 0: it would take hours or weeks to get there";

function gstreamer(
  name: string,
  sink: (url: string) => string[],
  rest: Pick<Publisher, "showsRefusal" | "cannot">,
): Publisher {
  return {
    ...copier,
    name,
    codecs: "avc",
    remakesClock: true,
    showsRefusal: rest.showsRefusal,
    cannot: { "past 2^24 ms": fromZero, "past 2^31 ms": fromZero, ...rest.cannot },
    async publish(url, source) {
      const picture = ["d.video", "!", "queue", "!", "h264parse", "!", "mux."];
      const sound = ["d.audio", "!", "queue", "!", "aacparse", "!", "mux."];
      return running(
        start("gst-launch-1.0", [
          ...["-e", "filesrc", `location=${source.file}`, "!", "flvdemux", "name=d"],
          ...["flvmux", "name=mux", "streamable=true", "!", ...sink(url)],
          ...(source.kind === "no video" ? [] : picture),
          ...(source.kind === "no audio" ? [] : sound),
        ]),
      );
    },
  };
}

const rtmp2sink = gstreamer("GStreamer rtmp2sink", (url) => ["rtmp2sink", `location=${url}`], {
  showsRefusal: { description: true, pattern: /Not authorized.*|stream already exists.*/ },
  cannot: {},
});
const rtmpsink = gstreamer("GStreamer rtmpsink", (url) => ["rtmpsink", `location=${url} live=1`], {
  // The element does not report librtmp's messages.
  showsRefusal: { description: false, pattern: /ERROR: from element.*GstRTMPSink.*/ },
  cannot: { "sps change": "keeps the headers it began with (nginx-rtmp gets the same broken stream)" },
});

function pyav(name: string, codecs: Codecs, cannot: Publisher["cannot"]): Publisher {
  return {
    ...copier,
    name,
    codecs,
    cannot,
    showsRefusal: { description: true, pattern: /Server error: .*/ },
    publish: async (url, source, offsetS) =>
      running(start(python(), ["test/fixtures/publish.py", source.file, url, String(offsetS)])),
  };
}

/** nginx accepts ffmpeg's publish and relays it to us, under the name in its configuration. */
const nginx: Publisher = {
  ...copier,
  name: "nginx-rtmp push",
  codecs: "avc",
  isHasty: true,
  // It logs the reason only at debug.
  showsRefusal: { description: false, pattern: /\*\d+ disconnect, .*server: ngx-relay/ },
  async publish(url, source, offsetS) {
    const relay = await startNginxRtmp({ push: url });
    const feed = start("ffmpeg", ffmpegArguments(`${relay.url}/feed`, source, offsetS));
    return {
      ended: feed.exit,
      log: () => relay.log(),
      async stop() {
        feed.kill("SIGTERM");
        await feed.exit;
        await relay.stop();
      },
    };
  },
};

const obs: Publisher = {
  name: "OBS 29",
  // Its librtmp unescapes the key before it sends it; nginx-rtmp sees the same.
  sends: decodeURIComponent,
  codecs: "avc",
  copies: false,
  remakesClock: true,
  isHasty: false,
  showsRefusal: { description: true, pattern: /\[rtmp stream: [^\]]*\].*(Denied|BadName).*|.*NetStream\.Publish.*/ },
  cannot: {
    "no audio": "always has a sound track; muted is silence",
    "no video": "its RTMP output needs a picture",
    "past 2^24 ms": "counts from 0",
    "past 2^31 ms": "counts from 0",
    "sps change": "does not change the picture while it streams",
  },
  async publish(url, source, _offsetS, condition) {
    const folder = mkdtempSync(join(tmpdir(), "headgate-obs-"));
    const program = await startObs({ folder, url, file: source.file, bFrames: condition.media === "b-frames" ? 2 : 0 });
    program.exit.finally(() => rmSync(folder, { recursive: true, force: true }));
    return program;
  },
};

export const publishers: readonly Publisher[] = [
  ffmpeg,
  rtmp2sink,
  rtmpsink,
  obs,
  pyav("PyAV, FFmpeg 8, Opus", "opus", { "no audio": "without sound it is ffmpeg 5.1's cell" }),
  pyav("PyAV, FFmpeg 8, HEVC", "hevc", { "no video": "without a picture it is ffmpeg 5.1's cell" }),
  nginx,
];
