// The configuration of a page: its defaults and validation. The recommended settings are the defaults: 1280x720, 25
// frames/s, 2 Mbit/s.
import { WebcasterError } from "./pure/errors.ts";
import { RECONNECT_DEFAULT, type ReconnectConfig } from "./pure/reconnect.ts";

export type TrackKind = "audio" | "video";
/** Constraints for a microphone. */
export type AudioConstraints = Pick<
  MediaTrackConstraintSet,
  "autoGainControl" | "echoCancellation" | "noiseSuppression" | "channelCount"
>;

/** Which camera and microphone to use, and their settings. */
export interface MediaStreamConfig {
  /** Width and height, pixels. Default [1280, 720]. */
  readonly resolution?: readonly [width: number, height: number];
  /** Frames per second requested from the camera. Default 25. */
  readonly maxFramerate?: number;
  /** Captures and sends only audio, or only video. */
  readonly audioVideoOnly?: TrackKind;
  /** `channelCount: 2` also sends stereo. */
  readonly audioConstraints?: AudioConstraints;
  /** `deviceId` of a microphone; by default the browser chooses. */
  readonly audioDeviceId?: string;
  /** `deviceId` of a camera; by default the browser chooses. */
  readonly videoDeviceId?: string;
}

/** Limits of what is sent. */
export interface BroadcastConfig {
  /** Video, bits per second. Default 2,000,000. */
  readonly maxVideoBitrateBps?: number;
  /** Audio (Opus), bits per second. Default: the browser's, about 32,000 for mono. */
  readonly maxAudioBitrateBps?: number;
  /** Video frames per second. Default 25. */
  readonly maxEncodingFramerate?: number;
  /** AAC transcoded by the service, bits per second. Default: the service's. */
  readonly transcodeAudioBitrateBps?: number;
}

export interface MutedConfig {
  readonly audio?: boolean;
  readonly video?: boolean;
}

export interface InputConfig {
  /** Media supplied by the page (a canvas, a mixer); then `mediaStreamCfg` is not used. The page remains the owner of
   *  its tracks. */
  readonly mediaStream?: MediaStream | null;
  readonly mediaStreamCfg?: MediaStreamConfig | null;
  readonly muted?: MutedConfig;
  readonly broadcastCfg?: BroadcastConfig | null;
}

export interface AuthConfig {
  /** A web token from `POST /webcaster`, which names stream and ingest URL; or a function that fetches one, called
   *  before each connection, so that a reconnect hours later has a valid token. */
  readonly token: string | (() => string | Promise<string>);
}

export interface Config {
  /** The service: `https://host`, its WHIP endpoint `https://host/p/webrtc`, or a stream record's `ingest.whip.url`. */
  readonly serverUrl: string;
  /** Where the service pushes the stream: `rtmp://host/live`. Not needed with a token, or when `serverUrl` contains
   *  it. */
  readonly ingestUrl?: string | null;
  /** Passed on unchanged. With custom arguments: `encodeStreamName("Ab1Cd-9XyZ0?passcode=s3cret")`. Not needed with a
   *  token, or when `serverUrl` contains it. */
  readonly streamName?: string | null;
  readonly auth?: AuthConfig | null;
  readonly inputCfg?: InputConfig | null;
  /** `id` of the `<video>` in which `startPreview` shows the media. */
  readonly previewVideoElId?: string | null;
  /** Whether a lost broadcast is restarted. Off by default; `true` uses all defaults of `ReconnectConfig`. */
  readonly reconnect?: ReconnectConfig | boolean | null;
  /** Accepted from pages written for older clients, but unused: `onMetrics` needs no account. */
  readonly metrics?: unknown;
}

/** All settings with their values. */
export interface ResultConfig {
  readonly serverUrl: string;
  readonly ingestUrl: string | null;
  readonly streamName: string | null;
  readonly auth: AuthConfig | null;
  readonly inputCfg: {
    readonly mediaStream: MediaStream | null;
    readonly mediaStreamCfg: MediaStreamConfig & Required<Pick<MediaStreamConfig, "resolution" | "maxFramerate">>;
    readonly muted: Required<MutedConfig>;
    readonly broadcastCfg: BroadcastConfig &
      Required<Pick<BroadcastConfig, "maxVideoBitrateBps" | "maxEncodingFramerate">>;
  };
  readonly previewVideoElId: string | null;
  readonly reconnect: Required<ReconnectConfig> | null;
}

/** Validates a configuration and fills in the defaults; throws `config_invalid` naming the member. */
export function completeConfig(config: Config): ResultConfig {
  const { auth = null, inputCfg, reconnect } = config;
  const media = inputCfg?.mediaStreamCfg ?? {};
  const broadcast = inputCfg?.broadcastCfg ?? {};
  const muted = inputCfg?.muted ?? {};
  checkText("serverUrl", config.serverUrl);
  if (!isHttpUrl(config.serverUrl)) throw invalid("serverUrl must be the http(s) URL of the service");
  for (const name of ["ingestUrl", "streamName", "previewVideoElId"] as const) {
    if (config[name] !== undefined && config[name] !== null) checkText(name, config[name]);
  }
  if (auth !== null && typeof auth.token !== "function") checkText("auth.token", auth.token);
  const hasTarget = /[?&]stream_name=./.test(config.serverUrl) || auth !== null;
  if (!hasTarget && !config.streamName) throw invalid("streamName or auth.token is required");
  for (const [name, value] of Object.entries({ maxFramerate: media.maxFramerate, ...broadcast })) {
    if (value !== undefined) checkPositive(name, value);
  }
  const { resolution } = media;
  if (resolution !== undefined && (resolution.length !== 2 || !resolution.every((pixels) => pixels > 0))) {
    throw invalid("resolution must be [width, height] in pixels");
  }
  if (media.audioVideoOnly !== undefined && !["audio", "video"].includes(media.audioVideoOnly)) {
    throw invalid('audioVideoOnly must be "audio" or "video"');
  }
  return {
    serverUrl: config.serverUrl,
    ingestUrl: config.ingestUrl ?? null,
    streamName: config.streamName ?? null,
    auth,
    inputCfg: {
      mediaStream: inputCfg?.mediaStream ?? null,
      mediaStreamCfg: { ...media, resolution: resolution ?? [1280, 720], maxFramerate: media.maxFramerate ?? 25 },
      muted: { audio: muted.audio ?? false, video: muted.video ?? false },
      broadcastCfg: {
        ...broadcast,
        maxVideoBitrateBps: broadcast.maxVideoBitrateBps ?? 2_000_000,
        maxEncodingFramerate: broadcast.maxEncodingFramerate ?? 25,
      },
    },
    previewVideoElId: config.previewVideoElId ?? null,
    reconnect: completeReconnect(reconnect ?? false),
  };
}

function completeReconnect(given: ReconnectConfig | boolean): Required<ReconnectConfig> | null {
  if (given === false) return null;
  if (given === true) return RECONNECT_DEFAULT;
  const complete = { ...RECONNECT_DEFAULT, ...given };
  for (const [name, value] of Object.entries(complete)) {
    if (!(typeof value === "number" && value >= 1)) throw invalid(`reconnect.${name} must be a number of at least 1`);
  }
  return complete;
}

function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

function checkText(name: string, value: unknown): void {
  if (typeof value !== "string" || value === "") throw invalid(`${name} must be a text that is not empty`);
}

function checkPositive(name: string, value: unknown): void {
  if (!(typeof value === "number" && Number.isFinite(value) && value > 0)) {
    throw invalid(`${name} must be a number above 0`);
  }
}

function invalid(detail: string): WebcasterError {
  return new WebcasterError("config_invalid", { detail });
}
