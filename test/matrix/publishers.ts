// The programs that publish, each as its users start it. What a program cannot do is said here, with the reason.
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
  /** It has sent everything, or was refused and gave up. Never of a program that goes on until it is told. */
  readonly ended: Promise<unknown>;
  /** Everything it has printed or logged. */
  log(): string;
  /** Ends it, the way its user would. */
  stop(): Promise<void>;
}

export interface Publisher {
  readonly name: string;
  readonly codecs: Codecs;
  /** What this program sends is the source's content, byte for byte; else it encodes by itself. */
  readonly copies: boolean;
  /** Sends at once, without waiting for the server's yes: what comes before it is lost. */
  readonly isHasty: boolean;
  /** Where it prints or logs the description of a refusal; or what it prints instead. */
  readonly showsRefusal: { readonly description: boolean; readonly pattern: RegExp };
  /** Reasons by condition. */
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

const copier = { copies: true, isHasty: false, cannot: {} } as const;

export const ffmpeg: Publisher = {
  ...copier,
  name: "ffmpeg 5.1",
  codecs: "avc",
  showsRefusal: { description: true, pattern: /Server error: .*/ },
  publish: async (url, source, offsetS) => running(start("ffmpeg", ffmpegArguments(url, source, offsetS))),
};

/** GStreamer's FLV muxer makes the clock, and it begins at 0. */
const fromZero = "flvmux counts from 0: it would take hours or weeks to get there";

function gstreamer(name: string, sink: (url: string) => string[], showsRefusal: Publisher["showsRefusal"]): Publisher {
  return {
    ...copier,
    name,
    codecs: "avc",
    showsRefusal,
    cannot: { "past 2^24 ms": fromZero, "past 2^31 ms": fromZero },
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
  // It knows the two codes and has its own words for them.
  description: false,
  pattern: /Not authorized.*|stream already exists.*/,
});
const rtmpsink = gstreamer("GStreamer rtmpsink", (url) => ["rtmpsink", `location=${url} live=1`], {
  // librtmp logs it, the element does not pass it on.
  description: false,
  pattern: /Could not connect to RTMP stream.*|ERROR: from element.*rtmpsink.*/,
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

/** nginx takes what ffmpeg publishes and relays it to us, under the name that its configuration says. */
const nginx: Publisher = {
  ...copier,
  name: "nginx-rtmp push",
  codecs: "avc",
  isHasty: true,
  showsRefusal: { description: true, pattern: /onStatus: level='error'.*?description='[^']*'/ },
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
  codecs: "avc",
  copies: false,
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
