// The text of each moment of a publish, written for the people of the organisation.
import { denialClause, hasFailed, sentence } from "../../text/webhook-words.ts";
import { withoutSecrets } from "../../text/without-secrets.ts";
import { readEnding } from "../ending/ending.ts";
import { endWords } from "../monitoring/end-words.ts";
import { irregularityWords } from "../monitoring/irregularities.ts";
import { withoutAac } from "../transcoder-error.ts";
import type { Moment, MomentFigures, What } from "./moments.ts";

type Words = { readonly [W in What]: (figures: MomentFigures[W]) => string };

const WORDS: Words = {
  requested: ({ protocol, address }) => {
    const from = address === null ? "A broadcaster" : `A broadcaster at ${address}`;
    return `${from} asked to publish${protocol === null ? "" : ` by ${protocol.toUpperCase()}`}.`;
  },
  webhook_allowed: ({ took_ms }) => `The webhook answered 200 after ${lasting(took_ms)}.`,
  webhook_denied: ({ status, took_ms, reason }) =>
    `${sentence(denialClause(status, `after ${lasting(took_ms)}`)).slice(0, -1)}${because(reason)}.`,
  webhook_unreachable: ({ cause, took_ms, detail }) =>
    `The webhook gave no answer: ${spaced(cause)} after ${lasting(took_ms)}${because(detail)}.`,
  denied: ({ cause, reason, status }) => {
    const isFailure = status !== null && hasFailed(status);
    const why = isFailure ? `because ${denialClause(status)}` : `(${spaced(cause)})`;
    return `The publish was denied ${why}; the broadcaster was told "${reason}".`;
  },
  accepted: ({ has_webhook }) =>
    has_webhook ? "The publish was accepted." : "The publish was accepted; no webhook is set.",
  offer_answered: ({ offered_video, offered_audio, video, audio, candidates }) => {
    const offered = [
      offered_video && `video (${codecs(offered_video)})`,
      offered_audio && `audio (${codecs(offered_audio)})`,
    ];
    const agreed = [codecs(video), codecs(audio)].filter(Boolean).join(" and ");
    const what = offered.filter(Boolean).join(" and ") || "neither video nor audio";
    const paths = candidates === "" ? "" : `, with candidates (${candidates})`;
    return `The broadcaster offered ${what}${paths}${agreed === "" ? "" : `; agreed: ${agreed}`}.`;
  },
  ice_connected: (path) =>
    `ICE found a path after ${lasting(path.after_ms)}${over(path)}; the DTLS handshake was not finished yet.`,
  connected: (path) => `ICE and DTLS connected after ${lasting(path.after_ms)}${over(path)}.`,
  first_audio: ({ codec, sample_rate, channels, after_ms }) =>
    `The first audio arrived after ${lasting(after_ms)}: ${list([
      codecs(codec),
      sample_rate === null ? null : `${sample_rate / 1_000} kHz`,
      channels === null ? null : `${channels} ${channels === 1 ? "channel" : "channels"}`,
    ])}.`,
  first_video: ({ codec, width, height, after_ms }) => {
    const what = list([codec && codecs(codec), width === null || height === null ? null : `${width}×${height}`]);
    return `The first video arrived after ${lasting(after_ms)}${what === "" ? "" : `: ${what}`}.`;
  },
  keyframes_missing: ({ lasted_ms, is_over, requested }) => {
    const asked = requested === 0 ? "" : `; requested ${requested === 1 ? "once" : `${requested} times`}`;
    return `No keyframe for ${lasting(lasted_ms)}${soFar(is_over)}${asked}.`;
  },
  keyframes_rare: ({ lasted_ms, is_over, gop_ms }) =>
    `Keyframes were ${lasting(gop_ms)} apart for ${lasting(lasted_ms)}${soFar(is_over)}: players take that long to start. ` +
    "Set the encoder's keyframe interval to 2 s.",
  video_stopped: ({ lasted_ms, is_over }) =>
    `No video frame arrived for ${lasting(lasted_ms)}${soFar(is_over)}, although the connection was up.`,
  silent: ({ lasted_ms, is_over }) =>
    `Nothing arrived from the broadcaster for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  packet_loss: ({ lasted_ms, is_over, worst_percent }) =>
    `Up to ${worst_percent} % of the packets were lost and not recovered, for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  no_media: ({ lasted_ms, is_over }) =>
    `Neither video nor audio arrived for ${lasting(lasted_ms)}${soFar(is_over)}, although the connection was up.`,
  no_video: ({ lasted_ms, is_over }) => `There was no video for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  no_audio: ({ lasted_ms, is_over }) => `There was no audio for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  audio_video_apart: ({ lasted_ms, is_over, worst_ms }) =>
    `Video and audio were up to ${lasting(worst_ms)} apart, for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  long_round_trip: ({ lasted_ms, is_over, worst_ms }) =>
    `The round-trip time was high, up to ${lasting(worst_ms)}, for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  frame_rate_unsteady: ({ lasted_ms, is_over }) =>
    `The frame rate was unsteady for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  bitrate_fell: ({ lasted_ms, is_over, kbps }) =>
    `The bitrate fell to less than half, ${kbps} kbit/s, for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  bitrate_limit_reached: ({ lasted_ms, is_over, kbps }) =>
    `The bitrate limit of ${kbps} kbit/s was reached for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  frames_dropped: ({ lasted_ms, is_over, count }) =>
    `Frames were dropped for slow readers, ${count} in all, for ${lasting(lasted_ms)}${soFar(is_over)}.`,
  irregular: ({ code, count }) => `${irregularityWords(code)}${count === 1 ? "" : ` (${count} times)`}`,
  transcoder_failed: ({ reason }) => `${withoutAac(reason)}.`,
  upstream_sending: ({ upstream, away_ms, after_ms }) =>
    away_ms === null
      ? `Upstream ${upstream} accepted the publish after ${lasting(after_ms)}.`
      : `Upstream ${upstream} accepted the publish again after ${lasting(away_ms)}.`,
  upstream_lost: ({ upstream, was_sending, detail }) =>
    `Upstream ${upstream} ${was_sending ? "was lost" : "did not accept the publish"}${because(detail)}.`,
  update_rejected: ({ status, took_ms, reason }) =>
    hasFailed(status)
      ? `Your webhook failed on an update (status ${status}, after ${lasting(took_ms)})${because(reason)}.`
      : `The webhook answered an update with ${status} after ${lasting(took_ms)}${because(reason)}.`,
  update_unanswered: ({ cause, took_ms, detail }) =>
    `The webhook gave no answer to an update: ${spaced(cause)} after ${lasting(took_ms)}${because(detail)}.`,
  running: ({ lasted_ms, bytes_in, bytes_out }) => `Running for ${lasting(lasted_ms)}: ${sizes(bytes_in, bytes_out)}.`,
  ended: ({ reason, ended_by = null, detail = null, lasted_ms, bytes_in, bytes_out }) =>
    `Ended after ${lasting(lasted_ms)}, ${sizes(bytes_in, bytes_out)}: ${lowered(endWords(reason, readEnding({ end_code: ended_by, end_who: null, end_detail: detail })))}`,
  continues: ({ client_id }) => `It took over the upstreams and players of publish ${client_id}, which was lost.`,
  continued: ({ client_id, after_ms }) =>
    `Publish ${client_id} took over its upstreams and players after ${lasting(after_ms)}.`,
  stands_by: ({ client_id, cause }) =>
    cause === "began"
      ? `It is on standby for publish ${client_id}, which is on air: nothing of it is sent on.`
      : `Publish ${client_id} took over (${TAKEOVERS[cause] ?? spaced(cause)}); this one is on standby.`,
  took_over: ({ client_id, cause }) =>
    client_id === null
      ? "It was put on air by a switch."
      : `It took over from publish ${client_id} (${TAKEOVERS[cause] ?? spaced(cause)}), with its upstreams and players.`,
  end_delivered: ({ attempts, status }) =>
    `publish_done was delivered on ${attempts === 1 ? "the first attempt" : `attempt ${attempts}`} (${status}).`,
  end_not_delivered: ({ attempts, cause, is_given_up }) =>
    `publish_done was not delivered after ${attempts === 1 ? "one attempt" : `${attempts} attempts`} (${whyNot(cause)}); ` +
    `${is_given_up ? "no further attempts are made" : "it will be retried"}.`,
  left_out: ({ count, of }) => `${count} more entries like this (${of}) are omitted.`,
};

/** One or two sentences, without secrets. */
export function wordsOf<W extends What>({ what, figures }: Moment<W>): string {
  const words = WORDS[what] as ((figures: MomentFigures[W]) => string) | undefined;
  // A newer version of headgate may have written an unknown code.
  return words === undefined ? spaced(what) : withoutSecrets(words(figures as MomentFigures[W]));
}

/** `310 ms`, `8.2 s`, `3 min 12 s`, `2 h 5 min`. */
export function lasting(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, "")} s`;
  const seconds = Math.round(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  if (hours > 0) return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`;
  return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

function sizes(bytesIn: number, bytesOut: number): string {
  return `${size(bytesIn)} in, ${size(bytesOut)} out`;
}

/** In decimal units, like bitrates. */
function size(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${step === 0 ? bytes : (bytes / 1_000 ** step).toFixed(1)} ${units[step]}`;
}

function over({ transport, client }: { readonly transport: string | null; readonly client: string | null }): string {
  return `${transport === null ? "" : ` over ${transport.toUpperCase()}`}${client === null ? "" : ` from ${client}`}`;
}

function because(reason: string | null): string {
  const said = (reason ?? "").trim().replace(/\.+$/, "");
  return said === "" ? "" : `: ${said}`;
}

/** Why another publish of a stream went on air. */
const TAKEOVERS: Readonly<Record<string, string>> = {
  lost: "the other one was lost",
  silent: "the other one sent nothing",
  switched: "by a switch",
};

/** As they are usually written. */
const CODECS: Readonly<Record<string, string>> = { h264: "H.264", hevc: "HEVC", aac: "AAC", opus: "Opus", mp3: "MP3" };
const codecs = (names: string) =>
  names
    .split(", ")
    .map((name) => CODECS[name.toLowerCase()] ?? name.toUpperCase())
    .join(", ");
const soFar = (isOver: boolean) => (isOver ? "" : " so far");
/** A status, or the reason for none. */
const whyNot = (cause: string) => (/^5\d\d$/.test(cause) ? `your webhook failed with status ${cause}` : spaced(cause));
const spaced = (code: string) => code.replaceAll("_", " ");
const list = (parts: readonly (string | null)[]) => parts.filter((part) => part !== null).join(", ");
const lowered = (sentence: string) => sentence.charAt(0).toLowerCase() + sentence.slice(1);
