// The settings of a page of the v5 API, and what they become: the service's start_broadcast, and a media input.
import type { MutedConfig, ResultConfig, TrackKind } from "../config.ts";

/** What is captured and sent. Sizes in pixels, frames per second, bits per second. */
export interface RtcUserConfig {
  readonly width?: number;
  readonly height?: number;
  readonly framerate?: number;
  readonly videoBitrate?: number;
  /** `deviceId`; `false` for no audio, or no video. */
  readonly audioDevice?: string | false;
  readonly videoDevice?: string | false;
}

export interface TranscodingTargets {
  /** With a token both are taken from it. */
  readonly output?: string;
  readonly streamname?: string;
  readonly videobitrate?: number | string;
  readonly audiobitrate?: number | string;
  readonly framerate?: number | string;
  readonly rtmpconnectinfo?: object | string;
}

/** What `startBroadcast` takes. */
export interface StartOptions {
  readonly jwt?: string;
  readonly transcodingTargets?: TranscodingTargets;
}

/** The message of `start_broadcast`: the service expects every value as text. */
export function startOf(
  sessionId: string,
  stream: MediaStream,
  { jwt, transcodingTargets = {} }: StartOptions,
  { width = 1280, height = 720, framerate = 25, videoBitrate }: RtcUserConfig,
): object {
  const { output, streamname, rtmpconnectinfo, ...rates } = transcodingTargets;
  const text = (value: unknown) => (value === undefined ? undefined : String(value));
  return {
    session_id: sessionId,
    jwt,
    output,
    streamname,
    videowidth: text(width),
    videoheight: text(height),
    videobitrate: text(rates.videobitrate ?? videoBitrate),
    framerate: text(rates.framerate ?? framerate),
    audiobitrate: text(rates.audiobitrate),
    rtmpconnectinfo: typeof rtmpconnectinfo === "object" ? JSON.stringify(rtmpconnectinfo) : rtmpconnectinfo,
    videocodec: "H264",
    h264passthrough: "1",
    audio: stream.getAudioTracks().length > 0 ? "1" : "0",
    video: stream.getVideoTracks().length > 0 ? "1" : "0",
  };
}

/** The same as the settings of a media input. */
export function inputOf(
  { width = 1280, height = 720, framerate = 25, videoBitrate = 2_000_000, ...devices }: RtcUserConfig,
  muted: Required<MutedConfig>,
): ResultConfig["inputCfg"] {
  const { audioDevice, videoDevice } = devices;
  const alone: TrackKind | null = videoDevice === false ? "audio" : audioDevice === false ? "video" : null;
  return {
    mediaStream: null,
    mediaStreamCfg: {
      resolution: [width, height],
      maxFramerate: framerate,
      ...(alone === null ? {} : { audioVideoOnly: alone }),
      ...(audioDevice ? { audioDeviceId: audioDevice } : {}),
      ...(videoDevice ? { videoDeviceId: videoDevice } : {}),
    },
    muted,
    broadcastCfg: { maxVideoBitrateBps: videoBitrate, maxEncodingFramerate: framerate },
  };
}
