// The player of the live preview: HTTP-FLV by mpegts.js, which is loaded when a preview is opened. It stays close to
// the live edge and discards what was shown.
import type Mpegts from "mpegts.js";

/** Latency in seconds: the target, and the value above which it plays faster to catch up. */
const LATENCY_TARGET_S = 0.5;
const LATENCY_MOST_S = 1.0;
const CATCH_UP_RATE = 1.25;
/** Media kept behind the current position, seconds. */
const KEPT_S = 10;

export type PreviewEnd =
  /** The publish has ended, or there is none. */
  | "ended"
  /** The limit of concurrent previews is reached. */
  | "full"
  | "not-signed-in"
  /** This browser has no decoder for the codec. */
  | "codec"
  | "network";

export interface Preview {
  stop(): void;
}

/** Plays into `video` until `stop`, or until `onEnd` is called once. */
export async function startPreview(
  address: string,
  video: HTMLVideoElement,
  onEnd: (why: PreviewEnd) => void,
): Promise<Preview> {
  const { default: mpegts } = await import("mpegts.js");
  if (!mpegts.isSupported()) {
    onEnd("codec");
    return { stop() {} };
  }
  mpegts.LoggingControl.applyConfig({ enableAll: false });
  const player = mpegts.createPlayer(
    { type: "flv", isLive: true, url: address, cors: false, withCredentials: false },
    {
      enableStashBuffer: false,
      lazyLoad: false,
      liveSync: true,
      liveSyncTargetLatency: LATENCY_TARGET_S,
      liveSyncMaxLatency: LATENCY_MOST_S,
      liveSyncPlaybackRate: CATCH_UP_RATE,
      autoCleanupSourceBuffer: true,
      autoCleanupMaxBackwardDuration: KEPT_S * 2,
      autoCleanupMinBackwardDuration: KEPT_S,
    },
  );
  let isOver = false;
  const stop = () => {
    if (isOver) return;
    isOver = true;
    player.destroy();
  };
  const end = (why: PreviewEnd) => {
    if (isOver) return;
    stop();
    onEnd(why);
  };
  player.on(mpegts.Events.ERROR, (type: string, detail: string, info: { readonly code?: number } | undefined) =>
    end(endOf(mpegts, type, detail, info?.code)),
  );
  player.on(mpegts.Events.LOADING_COMPLETE, () => end("ended"));
  player.attachMediaElement(video);
  player.load();
  video.play().catch(() => {}); // muted playback is always allowed; a pause meanwhile rejects the promise
  return { stop };
}

function endOf(mpegts: typeof Mpegts, type: string, detail: string, status: number | undefined): PreviewEnd {
  if (type === mpegts.ErrorTypes.MEDIA_ERROR) return "codec";
  if (status === 404) return "ended";
  if (status === 503) return "full";
  if (status === 403 || status === 401) return "not-signed-in";
  return detail === mpegts.ErrorDetails.NETWORK_UNRECOVERABLE_EARLY_EOF ? "ended" : "network";
}
