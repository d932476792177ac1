// Stream names with custom arguments, and the URL to which an offer is posted. Pure.

/** Sent to the customer's webhook as `key=value`. */
export type CustomArguments = Readonly<Record<string, string | number | boolean>>;

/**
 * A stream name with custom arguments (`Ab1Cd-9XyZ0?passcode=s3cret`), escaped as a whole for `Config.streamName`.
 *
 * Why this is the page's to call: the stream name is itself one parameter of the WHIP URL, so an unescaped `?`, `&` or
 * `=` in it would start parameters of that URL instead, and the customer's webhook would never see them. The package
 * passes `streamName` on unchanged: it cannot know whether a `%3F` in it was escaped by you or belongs to the name.
 *
 * Arguments given as an object are escaped as form fields first, so that any value arrives as it was.
 */
export function encodeStreamName(name: string, customArguments: CustomArguments = {}): string {
  const fields = Object.entries(customArguments).map(
    ([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`,
  );
  const joint = name.includes("?") ? "&" : "?";
  return encodeURIComponent(fields.length === 0 ? name : `${name}${joint}${fields.join("&")}`);
}

/** The path of a service's WHIP endpoint. */
const WHIP_PATH = "/p/webrtc";

export interface EndpointParts {
  /** `https://host` or the endpoint itself; may have a query, as a stream record's `ingest.whip.url` does. */
  readonly serverUrl: string;
  readonly streamName: string | null;
  readonly ingestUrl: string | null;
  /** Bits per second. */
  readonly transcodeAudioBitrateBps: number | null;
  readonly isStereo: boolean;
}

/** The URL to which offers are posted. The stream name is inserted unchanged. */
export function endpointUrl(parts: EndpointParts): string {
  const [base = "", query = ""] = parts.serverUrl.split(/\?(.*)/s);
  const bare = base.replace(/\/+$/, "");
  const whole = new URL(base).pathname === "/" ? bare + WHIP_PATH : bare;
  const { streamName, ingestUrl, transcodeAudioBitrateBps: bitrate, isStereo } = parts;
  const parameters = [
    query,
    streamName === null ? "" : `stream_name=${streamName}`,
    ingestUrl === null ? "" : `stream_url=${encodeURIComponent(ingestUrl)}`,
    bitrate === null ? "" : `audio_bitrate=${Math.round(bitrate)}`,
    isStereo ? "stereo=1" : "",
  ].filter((part) => part !== "");
  return parameters.length === 0 ? whole : `${whole}?${parameters.join("&")}`;
}
