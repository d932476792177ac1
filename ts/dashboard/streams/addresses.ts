// The addresses of a stream in the form that encoders, players and people use. Pure.
import type { Stream } from "./records.ts";
import { nameOf } from "./records.ts";

/** The addresses for a broadcaster, including custom arguments (what follows the `?` of a stream name; "" for none). */
export interface Addresses {
  /** The address for players: without the publish key. */
  readonly play: string;
  /** Server and stream key, as OBS names them. */
  readonly server: string;
  readonly key: string;
  readonly rtmp: string;
  /** null when this Headgate does not serve RTMPS. */
  readonly rtmps: string | null;
  readonly whip: string;
}

export function addressesOf(stream: Stream, customArguments = ""): Addresses {
  const { rtmp, rtmps, whip } = stream.ingest;
  const key = withArguments(rtmp.stream_key, customArguments);
  return {
    play: `${rtmp.url}/${withArguments(nameOf(stream), customArguments)}`,
    server: rtmp.url,
    key,
    rtmp: `${rtmp.url}/${key}`,
    rtmps: rtmps === null ? null : `${rtmps.url}/${key}`,
    whip: whipAddress(whip.url, key),
  };
}

/** `NAME?passcode=s3cret`; a leading `?` of the arguments is optional, and those of a stream key come first. */
export function withArguments(name: string, customArguments: string): string {
  const given = customArguments.trim().replace(/^\?/, "");
  return given === "" ? name : `${name}${name.includes("?") ? "&" : "?"}${given}`;
}

/** The stream name is one parameter of the WHIP address: its own `?`, `&` and `=` are escaped. */
function whipAddress(whip: string, key: string): string {
  const url = new URL(whip);
  const others = [...url.searchParams].filter(([name]) => name !== "stream_name");
  const query = [["stream_name", key] as const, ...others].map(
    ([name, value]) => `${name}=${encodeURIComponent(value)}`,
  );
  return `${url.origin}${url.pathname}?${query.join("&")}`;
}
