// Options that a broadcaster may request with its media (P11), by WHIP or by the deprecated v5 signalling. Pure.
import { type Json, readJsonObject } from "./amf0.ts";

/** Limit of the object for the upstream's connect command, bytes. */
export const CONNECT_INFO_LIMIT_BYTES = 2_048;
/** Bounds of the bitrate of transcoded AAC, bit/s. */
const AUDIO_BITRATE = { least: 32_000, most: 320_000 };

/** Any bitrate is rounded and clamped: a broadcast never fails because of it. Bit/s. */
export function audioBitrateWithin(wanted: number): number {
  return Math.round(Math.min(Math.max(wanted, AUDIO_BITRATE.least), AUDIO_BITRATE.most));
}

/** The JSON object for the upstream's connect command; null when it is invalid or too long. */
export function readConnectInfo(given: Buffer): { readonly [key: string]: Json } | null {
  return given.length <= CONNECT_INFO_LIMIT_BYTES ? readJsonObject(given.toString()) : null;
}
