// One broadcast, from Go live to its end: the client package as the page needs it. The tracks stay the page's.
import { encodeStreamName, type Metrics, type MutedConfig, Webcaster, WebcasterError } from "../webcaster/index.ts";
import type { Quality } from "./qualities.ts";

/** Where a broadcast goes: where a web token says, or where people say. */
export type Target = { readonly token: string } | { readonly streamName: string; readonly address: string };

export interface SessionOptions {
  /** `https://host` of the service. */
  readonly serverUrl: string;
  readonly target: Target;
  readonly stream: MediaStream;
  readonly quality: Quality;
  readonly muted: Required<MutedConfig>;
}

/** What is told of a broadcast; `ended` comes once, last, and not after `end`. */
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
  /** Ends it, however far it has come. */
  end(): void;
}

export function startSession(options: SessionOptions, listener: Listener): Session {
  const { serverUrl, target, stream, quality, muted } = options;
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
  // A lost device is told as well, and ends nothing.
  webcaster.onError = (error) => {
    if (webcaster.state === "failed") fail(error);
  };
  void start();

  async function start(): Promise<void> {
    try {
      await webcaster.setup();
      await webcaster.startBroadcast();
    } catch (error) {
      if (error instanceof WebcasterError) fail(error);
      else throw error;
    }
  }

  function fail(error: WebcasterError): void {
    if (isOver) return;
    end();
    listener.ended(error);
  }

  function end(): void {
    isOver = true;
    void webcaster.dispose();
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
