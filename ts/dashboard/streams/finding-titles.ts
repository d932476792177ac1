// What is wrong with a live stream, in two or three words: for a row of the list, where a sentence would be cut.
import type { Finding } from "./records.ts";

export const FINDING_TITLES: Readonly<Record<Finding["code"], string>> = {
  silent: "Nothing arrives",
  no_media: "No media",
  no_video: "No video",
  no_audio: "No audio",
  video_stopped: "Video stopped",
  keyframes_missing: "No keyframes",
  keyframes_rare: "Rare keyframes",
  packet_loss: "Packets lost",
  audio_video_apart: "Out of sync",
  long_round_trip: "Long round trip",
  frame_rate_unsteady: "Unsteady frame rate",
  bitrate_fell: "Bitrate fell",
  bitrate_limit_reached: "Limit reached",
  upstream_down: "Upstream down",
  audio_not_transcoded: "No AAC audio",
  frames_dropped: "Slow readers",
  irregular: "Irregular media",
};
