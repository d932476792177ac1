// What was irregular about a publisher and was tolerated, repaired or left out: a sentence for each kind, for the
// people of the organisation.
import type { Irregularity } from "../../media/codes.ts";

/** How often one kind has occurred. */
export interface IrregularityCount {
  readonly code: Irregularity;
  readonly count: number;
}

const WORDS: Readonly<Record<Irregularity, string>> = {
  truncated_tag: "Empty or truncated audio or video messages were ignored.",
  unsupported_audio:
    "The audio codec is not supported: the stream continues without this audio. Send AAC, MP3 or Opus.",
  unsupported_video: "The video codec is not supported: the stream continues without this video. Send H.264.",
  unreadable_message: "Messages that could not be read were ignored.",
  excess_data: "Messages, such as captions or new codec configurations, arrived too fast: some were dropped.",
  oversized_message: "Messages above the limits (8 MiB of video or audio, 64 KiB of data) were dropped.",
  time_outlier: "Single timestamps were far from the others and were replaced.",
  time_step: "The encoder's clock restarted or jumped: the stream continued without the step.",
  time_missing: "The encoder sends no timestamps: arrival times are used instead.",
  time_backward: "Timestamps went backwards and were raised.",
  time_stopped: "The encoder's media clock stood still during pauses: the missing time was inserted.",
  filler_limited: "Less silence was inserted than the timestamps asked for.",
  audio_gap: "The audio stopped while the video continued: silence was sent to upstreams.",
  video_configuration_missing:
    "Video without a usable H.264 configuration (SPS and PPS) cannot be decoded and was withheld. Restart the encoder.",
  audio_configuration_missing:
    "Audio without a usable AAC configuration cannot be decoded and was withheld. Restart the encoder.",
  configuration_invalid: "Codec configurations that cannot be used were ignored.",
  configuration_rebuilt: "The codec configuration was missing and was rebuilt from the media.",
  framing_converted: "The media arrived in a different framing (Annex B or ADTS) and was converted.",
  framing_invalid: "Frames that could not be read were dropped.",
  keyframe_mismarked: "Keyframes were not marked as such: they were recognised by their content.",
  recovery_point: "The video has no keyframes, only recovery points: players and upstreams start at those.",
  malformed_payload: "Malformed RTP payloads were repaired or dropped.",
  marker_misplaced: "The RTP marker does not mark the ends of pictures: they were found by their timestamps.",
  retransmissions_missing: "Lost packets were requested again but never arrived: keyframes are requested instead.",
  disposable_lost: "Pictures that no other picture depends on were lost and left out.",
};

/** The sentence for a kind; the code itself when a newer version of headgate wrote it. */
export function irregularityWords(code: string): string {
  return WORDS[code as Irregularity] ?? `${code.replaceAll("_", " ")}.`;
}
