// Summary of an SDP for the log: media, directions, codecs and kinds of candidates. Credentials, addresses,
// fingerprints and free text are left out; a codec is named only when it is syntactically one.

export interface MediaSummary {
  readonly kind: "audio" | "video" | "application" | "other";
  /** The port is 0: rejected, or bundle-only. */
  readonly isOff: boolean;
  readonly direction: string;
  /** As in rtpmap, for H.264 with its profile: `H264/90000 42e01f`. */
  readonly codecs: readonly string[];
}

export interface SdpSummary {
  readonly media: readonly MediaSummary[];
  /** Number of each kind: `{"host udp": 2, "relay tcp": 1}`. */
  readonly candidates: Readonly<Record<string, number>>;
}

/** Lines examined: more than any client sends. */
const LINES_LIMIT = 5_000;
const MEDIA_LIMIT = 16;
const CODECS_LIMIT = 64;

const DIRECTIONS = ["sendrecv", "sendonly", "recvonly", "inactive"];
const TYPES = ["host", "srflx", "prflx", "relay"];
const KINDS = ["audio", "video", "application"] as const;

/** Never throws: text that is not SDP has no media. */
export function summaryOf(sdp: string): SdpSummary {
  const media: Section[] = [];
  const candidates = new Map<string, number>();
  for (const line of sdp.split(/\r?\n/, LINES_LIMIT)) {
    const section = media.at(-1);
    const [, kind, port] = /^m=(\w+) (\d+)/.exec(line) ?? [];
    if (kind !== undefined) {
      if (media.length === MEDIA_LIMIT) break;
      const known = KINDS.find((each) => each === kind) ?? "other";
      media.push({ kind: known, isOff: port === "0", direction: "sendrecv", codecs: new Map(), profiles: new Map() });
      continue;
    }
    const [, , transport = "", type = ""] = /^a=candidate:(\S+) \d+ (\w+) \S+ \S+ \d+ typ (\w+)/.exec(line) ?? [];
    if (type !== "") {
      const name = `${TYPES.includes(type) ? type : "other"} ${/^tcp$/i.test(transport) ? "tcp" : "udp"}`;
      candidates.set(name, (candidates.get(name) ?? 0) + 1);
      continue;
    }
    if (section === undefined) continue;
    const direction = DIRECTIONS.find((each) => line === `a=${each}`);
    if (direction !== undefined) section.direction = direction;
    const [, payload, codec] = /^a=rtpmap:(\d{1,3}) ([\w.-]{1,24}\/\d{1,6}(?:\/\d{1,2})?)$/.exec(line) ?? [];
    if (payload !== undefined && codec !== undefined && section.codecs.size < CODECS_LIMIT) {
      section.codecs.set(payload, codec);
    }
    const [, of, profile] = /^a=fmtp:(\d{1,3}) .*\bprofile-level-id=([0-9a-f]{6})\b/i.exec(line) ?? [];
    // The fmtp line may precede its rtpmap, or follow it.
    if (of !== undefined && profile !== undefined && section.profiles.size < CODECS_LIMIT)
      section.profiles.set(of, profile);
  }
  return {
    media: media.map(mediaOf),
    candidates: Object.fromEntries(candidates),
  };
}

interface Section extends Omit<MediaSummary, "codecs"> {
  direction: string;
  /** By payload type. */
  readonly codecs: Map<string, string>;
  readonly profiles: Map<string, string>;
}

function mediaOf({ kind, isOff, direction, codecs, profiles }: Section): MediaSummary {
  const named = [...codecs].map(([payload, codec]) => [codec, profiles.get(payload) ?? ""].join(" ").trim());
  return { kind, isOff, direction, codecs: [...new Set(named)] };
}
