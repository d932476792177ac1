// One broadcast, from Go live to its end: wraps the client package for the page, which remains the owner of the tracks.
import { encodeStreamName, type Metrics, type MutedConfig, Webcaster, WebcasterError } from "../webcaster/index.ts";
import type { Quality } from "./qualities.ts";

/** The target of a broadcast: from a web token, or entered by hand. */
export type Target = { readonly token: string } | { readonly streamName: string; readonly address: string };

export interface SessionOptions {
  /** `https://host` of the service. */
  readonly serverUrl: string;
  readonly target: Target;
  readonly stream: MediaStream;
  readonly quality: Quality;
  readonly muted: Required<MutedConfig>;
  /** The end of the former broadcast: until then it may hold the stream name. */
  readonly former: Promise<void>;
}

/** Receives the events of a broadcast; `ended` is called once, last, and not after `end`. */
export interface Listener {
  live(): void;
  reconnecting(): void;
  metrics(metrics: Metrics): void;
  ended(failure: WebcasterError): void;
}

export interface Session {
  replaceTrack(track: MediaStreamTrack): Promise<void>;
  changeQuality(quality: Quality): Promise<void>;
  setMuted(muted: Required<MutedConfig>): void;
  /** Ends it, in whatever state it is. Resolves when the service knows, or cannot be reached. */
  end(): Promise<void>;
}

export function startSession(options: SessionOptions, listener: Listener): Session {
  const { serverUrl, target, stream, quality, muted, former } = options;
  const webcaster = new Webcaster({
    serverUrl,
    ...("token" in target
      ? { auth: { token: target.token } }
      : { streamName: encodeStreamName(target.streamName), ingestUrl: target.address }),
    inputCfg: { mediaStream: stream, muted, broadcastCfg: upstreamOf(quality) },
    reconnect: true,
  });
  let isOver = false;

  webcaster.onStateChange = (state) => {
    if (isOver) return;
    if (state === "live") listener.live();
    else if (state === "recovering" || state === "reconnecting") listener.reconnecting();
  };
  webcaster.onMetrics = (metrics) => {
    if (!isOver && metrics.state === "live") listener.metrics(metrics);
  };
  // A lost device is reported here as well, but ends nothing.
  webcaster.onError = (error) => {
    if (webcaster.state === "failed") fail(error);
  };
  void start();

  async function start(): Promise<void> {
    try {
      await webcaster.setup();
      await former;
      if (!isOver) await webcaster.startBroadcast();
    } catch (error) {
      if (error instanceof WebcasterError) fail(error);
      else throw error;
    }
  }

  function fail(error: WebcasterError): void {
    if (isOver) return;
    void end();
    listener.ended(error);
  }

  async function end(): Promise<void> {
    isOver = true;
    await Promise.all([webcaster.dispose(), former]);
  }

  return {
    replaceTrack: (track) => webcaster.setTrack(track),
    async changeQuality(changed) {
      await webcaster.setUpstreamQuality(upstreamOf(changed));
    },
    setMuted: (changed) => webcaster.setMuted(changed),
    end,
  };
}

const upstreamOf = ({ videoBitrate, frameRate }: Quality) => ({
  maxVideoBitrateBps: videoBitrate,
  maxEncodingFramerate: frameRate,
});
