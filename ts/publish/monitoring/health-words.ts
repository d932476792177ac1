// What a finding about a running publish is called, in words for the people of the organisation: what is wrong, and what
// viewers notice or what to do about it.
import { irregularityWords } from "./irregularities.ts";

export const FINDING_CODES = [
  "silent",
  "no_media",
  "no_video",
  "no_audio",
  "video_stopped",
  "keyframes_missing",
  "keyframes_rare",
  "packet_loss",
  "audio_video_apart",
  "long_round_trip",
  "frame_rate_unsteady",
  "bitrate_fell",
  "bitrate_limit_reached",
  "upstream_down",
  "audio_not_transcoded",
  "frames_dropped",
  "irregular",
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

export interface Described {
  /** What is wrong, without a full stop: it also stands in a list. */
  readonly words: string;
  /** What viewers notice, and what to do: one or two sentences. */
  readonly advice: string;
}

/** What the words may name. */
export interface What {
  readonly about: string | null;
  readonly value: number | null;
  readonly isWhip: boolean;
  readonly name?: string;
  /** What the upstream or the transcoder said. */
  readonly said?: string | null;
}

const WORDS: {
  readonly [code in FindingCode]: (
    what: What & { readonly amount: number },
  ) => readonly [words: string, advice: string];
} = {
  silent: () => ["Nothing arrives from the broadcaster", "Check the encoder and its network."],
  no_media: () => [
    "Neither video nor audio arrives",
    "The connection is up, but carries no media. Check the encoder’s sources.",
  ],
  no_video: () => ["There is no video", "Only audio arrives. That is fine for radio, but not for video."],
  no_audio: ({ isWhip }) => [
    "There is no audio",
    `Viewers hear nothing. Check that ${isWhip ? "the microphone is allowed and chosen in the browser" : "an audio track is active in the encoder"}.`,
  ],
  video_stopped: () => [
    "The video has stopped",
    "The connection is up, but no video frame arrives: viewers see a frozen picture. Check the camera and the encoder.",
  ],
  keyframes_missing: () => [
    "No keyframe for a long time",
    "New viewers and upstreams wait for one and see nothing until then. Set the keyframe interval to 2 seconds.",
  ],
  keyframes_rare: ({ amount }) => [
    `Keyframes are ${(amount / 1_000).toFixed(1)} s apart`,
    "New viewers wait that long for video. Set the keyframe interval to 2 seconds.",
  ],
  packet_loss: ({ amount }) => [
    `${amount} % of the packets are lost`,
    "Viewers see the video freeze. A cable instead of Wi-Fi, or a lower bitrate, usually helps.",
  ],
  audio_video_apart: ({ amount }) => [
    `Video and audio are ${Math.abs(amount)} ms apart`,
    `The ${amount > 0 ? "audio" : "video"} arrives late. Lips and speech are out of sync.`,
  ],
  long_round_trip: ({ amount, isWhip }) => [
    `The round-trip time is high: ${amount} ms`,
    isWhip
      ? "Lost packets are resent only after that time. The usual cause is a busy uplink or a mobile network."
      : "The broadcaster’s uplink is probably full: a lower bitrate helps.",
  ],
  frame_rate_unsteady: () => [
    "The frame rate is unsteady",
    "The video stutters. The encoder’s machine is probably too busy, or the network drops frames.",
  ],
  bitrate_fell: ({ amount }) => [
    `The bitrate fell to ${bitrate(amount)}`,
    "It was more than twice as much within the last two minutes. Often the broadcaster’s uplink is busy; a very still image has the same effect.",
  ],
  bitrate_limit_reached: ({ amount }) => [
    `The limit of ${bitrate(amount)} is reached`,
    "The broadcaster could send more. Raise the bitrate limit if the video quality is too low.",
  ],
  upstream_down: ({ name = "An upstream", said = null }) => [
    `${name} does not receive the stream`,
    `It is tried again and again.${said === null ? "" : ` The last error: ${said}`}`,
  ],
  audio_not_transcoded: ({ said = null }) => [
    "The audio is not transcoded to AAC",
    `Players and upstreams that need AAC hear nothing.${said === null ? "" : ` The cause: ${said}`}`,
  ],
  frames_dropped: ({ amount }) => [
    `${amount.toLocaleString("en")} frames were dropped for slow readers`,
    "A player or an upstream reads too slowly for this bitrate. The others get everything.",
  ],
  irregular: ({ about, amount }) => [
    `The broadcaster’s media is irregular (${amount.toLocaleString("en")}×)`,
    irregularityWords(about ?? ""),
  ],
};

export function describe(code: FindingCode, what: What): Described {
  const [words, advice] = WORDS[code]({ ...what, amount: what.value ?? 0 });
  return { words, advice };
}

const bitrate = (kbps: number): string =>
  kbps < 1_000 ? `${Math.round(kbps)} kbps` : `${(kbps / 1_000).toFixed(1)} Mbps`;
