// Diagnoses a running publish in plain words: what is wrong, what viewers notice, and what to do. Pure: all data is
// passed in.
import type { Numbers, Session } from "../streams/records.ts";
import type { Series } from "./series.ts";

export interface Finding {
  readonly tone: "good" | "attention" | "bad";
  readonly title: string;
  readonly text: string;
}

export interface Observed {
  readonly session: Pick<
    Session,
    "protocol" | "tracks" | "upstreams" | "transcoder_error" | "dropped_frames" | "max_bitrate_kbps" | "irregularities"
  >;
  /** null before the first measurement. */
  readonly numbers: Numbers | null;
  readonly series: Series;
  /** Time since it was allowed, ms. */
  readonly ageMs: number;
}

/** How long a condition must last before it is reported, ms. */
const SETTLED_MS = 10_000;
/** Interval of keyframes above which viewers have to wait, and the one above which they give up, ms. */
const GOP_LONG_MS = 4_000;
const GOP_BAD_MS = 10_000;
const LOSS_SEEN_PERCENT = 1;
const LOSS_BAD_PERCENT = 5;
const RTT_LONG_MS = 300;
const SKEW_SEEN_MS = 200;
/** Frame rates that differ by more than this share of their mean are unsteady. */
const FPS_UNSTEADY = 0.2;
/** How much of a series is evaluated, and how long a broadcast must run before its frame rate is, ms. */
const RECENT_MS = 20_000;
const RUNNING_MS = 30_000;

/** The most serious first; a single finding that all is well when there is no other. */
export function findingsOf(observed: Observed): readonly Finding[] {
  const found = [
    ...arrival(observed),
    ...tracks(observed),
    ...network(observed),
    ...video(observed),
    ...upstreams(observed),
    ...others(observed),
  ];
  if (found.length === 0) return [allIsWell(observed)];
  return [...found.filter(({ tone }) => tone === "bad"), ...found.filter(({ tone }) => tone !== "bad")];
}

function allIsWell({ numbers, ageMs }: Observed): Finding {
  if (numbers === null || ageMs < SETTLED_MS) {
    return { tone: "good", title: "Just started", text: "The first measurements come within seconds." };
  }
  return { tone: "good", title: "All is well", text: "Video and audio arrive evenly. There is nothing to do." };
}

function* arrival({ series, ageMs }: Observed): Generator<Finding> {
  const recent = series.recent("bitrate_kbps", 4_000);
  if (ageMs > SETTLED_MS && recent.length >= 3 && recent.every((kbps) => kbps === 0)) {
    yield {
      tone: "bad",
      title: "Nothing arrives",
      text: "The connection is up, but neither video nor audio arrives. Check the encoder and its network.",
    };
    return;
  }
  const before = median(series.recent("bitrate_kbps", 120_000));
  const now = median(series.recent("bitrate_kbps", 8_000));
  const isKnown = before !== null && now !== null && series.length >= 40;
  if (isKnown && before > 300 && now < before / 2) {
    yield {
      tone: "attention",
      title: "The bitrate fell",
      text: `It is ${kbpsWords(now)} now and was ${kbpsWords(before)} over the last two minutes. Often the broadcaster's uplink is busy; a very still image has the same effect.`,
    };
  }
}

function* tracks({ session: { tracks, protocol }, ageMs }: Observed): Generator<Finding> {
  if (ageMs < SETTLED_MS) return;
  if (tracks.video === null && tracks.audio === null) {
    yield { tone: "bad", title: "No video and no audio", text: "The encoder is connected and sends neither." };
  } else if (tracks.audio === null) {
    const where =
      protocol === "whip"
        ? "the microphone is allowed and chosen in the browser"
        : "an audio track is active in the encoder";
    yield { tone: "attention", title: "There is no audio", text: `Viewers hear nothing. Check that ${where}.` };
  } else if (tracks.video === null) {
    yield {
      tone: "attention",
      title: "There is no video",
      text: "Only audio arrives. That is fine for radio, but not for video.",
    };
  }
}

function* network({ numbers, session: { protocol } }: Observed): Generator<Finding> {
  const { loss_percent: loss, rtt_ms: rtt, skew_ms: skew } = numbers ?? {};
  if (loss != null && loss >= LOSS_SEEN_PERCENT) {
    yield {
      tone: loss >= LOSS_BAD_PERCENT ? "bad" : "attention",
      title: `${loss} % of the packets are lost`,
      text: "Viewers see the video freeze. A cable instead of Wi-Fi, or a lower bitrate, usually helps.",
    };
  }
  if (rtt != null && rtt >= RTT_LONG_MS) {
    yield {
      tone: "attention",
      title: `The round-trip time is high: ${rtt} ms`,
      text:
        protocol === "whip"
          ? "Lost packets are resent only after that time. The usual cause is a busy uplink or a mobile network."
          : "The broadcaster's uplink is probably full: a lower bitrate helps.",
    };
  }
  if (skew != null && Math.abs(skew) >= SKEW_SEEN_MS) {
    yield {
      tone: "attention",
      title: `Video and audio are ${Math.abs(skew)} ms apart`,
      text: `The ${skew > 0 ? "audio" : "video"} arrives late. Lips and speech are out of sync.`,
    };
  }
}

function* video({
  session: { tracks, max_bitrate_kbps: limit },
  numbers,
  series,
  ageMs,
}: Observed): Generator<Finding> {
  if (tracks.video === null) return;
  const gop = numbers?.gop_ms ?? null;
  if (gop === null && ageMs > GOP_BAD_MS + SETTLED_MS) {
    yield {
      tone: "bad",
      title: "No keyframe for a long time",
      text: "New viewers and upstreams wait for one and see nothing until then. Set the keyframe interval to 2 seconds.",
    };
  } else if (gop !== null && gop > GOP_LONG_MS) {
    yield {
      tone: gop > GOP_BAD_MS ? "bad" : "attention",
      title: `Keyframes are ${(gop / 1_000).toFixed(1)} s apart`,
      text: "New viewers wait that long for video. Set the keyframe interval to 2 seconds.",
    };
  }
  const rates = series.recent("fps", RECENT_MS);
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const deviation = Math.sqrt(rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rates.length);
  if (ageMs > RUNNING_MS && mean > 0 && deviation / mean > FPS_UNSTEADY) {
    yield {
      tone: "attention",
      title: "The frame rate is unsteady",
      text: `Between ${Math.round(Math.min(...rates))} and ${Math.round(Math.max(...rates))} frames a second: it stutters. The encoder's machine is probably too busy, or the network drops frames.`,
    };
  }
  const kbps = median(series.recent("bitrate_kbps", RECENT_MS));
  if (limit > 0 && kbps !== null && kbps >= limit * 0.9) {
    yield {
      tone: "attention",
      title: `The limit of ${kbpsWords(limit)} is reached`,
      text: "The broadcaster could send more. Raise the bitrate limit if the video quality is too low.",
    };
  }
}

function* upstreams({ session: { upstreams } }: Observed): Generator<Finding> {
  for (const { label, url, state, last_error: error, audio_error: audioError } of upstreams) {
    const name = label ?? url;
    const why = error === null ? "" : ` It said: ${error}`;
    if (state === "refused") {
      yield { tone: "bad", title: `${name} refuses the stream`, text: `It is tried again every 30 s.${why}` };
    } else if (state === "waiting") {
      yield { tone: "attention", title: `${name} cannot be reached`, text: `It keeps being retried.${why}` };
    }
    if (audioError !== null) {
      yield { tone: "attention", title: `${name} gets no audio`, text: `Unless it accepts Opus: ${audioError}` };
    }
  }
}

function* others({ session }: Observed): Generator<Finding> {
  const { transcoder_error: error, dropped_frames: dropped, irregularities } = session;
  if (error !== null) {
    yield {
      tone: "bad",
      title: "The audio is not transcoded to AAC",
      text: `Players and upstreams that need AAC hear nothing. The cause: ${error}`,
    };
  }
  for (const { count, text } of irregularities) {
    yield { tone: "attention", title: `Irregular input (${count.toLocaleString("en")}×)`, text };
  }
  if (dropped > 0) {
    yield {
      tone: "attention",
      title: `${dropped.toLocaleString("en")} frames were dropped for slow readers`,
      text: "A player or an upstream reads too slowly for this bitrate. The others get everything.",
    };
  }
}

function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

const kbpsWords = (kbps: number) => (kbps < 1_000 ? `${Math.round(kbps)} kbps` : `${(kbps / 1_000).toFixed(1)} Mbps`);
