// What start_broadcast requests besides credential and target: sections, bitrates, the object for the upstream's
// connect command. Pure.
import type { Json } from "../../publish/whip/amf0.ts";
import { audioBitrateWithin, readConnectInfo } from "../../publish/whip/whip-parameters.ts";
import { type V5Request, wrong } from "./v5-messages.ts";

/** Some clients write kbit/s: no bitrate in bit/s is this small. */
const KILOBITS_BELOW = 10_000;
/** Least start bitrate suggested to a browser, kbit/s. */
const START_BITRATE_LEAST_KBPS = 100;

export interface V5BroadcastRequest {
  readonly audio: boolean;
  readonly video: boolean;
  readonly startBitrateKbps: number | null;
  readonly audioBitrate: number | null;
  readonly connectInfo: { readonly [key: string]: Json } | null;
}

/** Throws `V5Fault`. A section is included unless `audio` or `video` excludes it. */
export function readBroadcastRequest(request: Extract<V5Request, { type: "start_broadcast" }>): V5BroadcastRequest {
  const { audio, video } = { audio: request.audio ?? true, video: request.video ?? true };
  if (!audio && !video) throw wrong("video");
  const start = bitsOf(request.videobitrate);
  const sound = bitsOf(request.audiobitrate);
  return {
    audio,
    video,
    startBitrateKbps: start === null ? null : Math.max(START_BITRATE_LEAST_KBPS, Math.round(start / 1_000)),
    audioBitrate: sound === null ? null : audioBitrateWithin(sound),
    connectInfo: connectInfoOf(request.rtmpconnectinfo),
  };
}

/** Whole bit/s; null for anything that is not a positive number, since a broadcast never fails because of it. */
function bitsOf(given: string | null): number | null {
  const number = Number(given ?? "");
  if (!Number.isFinite(number) || number <= 0) return null;
  return Math.round(number < KILOBITS_BELOW ? number * 1_000 : number);
}

function connectInfoOf(given: string | null): V5BroadcastRequest["connectInfo"] {
  if (given === null || given === "") return null;
  const info = readConnectInfo(Buffer.from(given));
  if (info === null) throw wrong("rtmpconnectinfo");
  return info;
}
