// The video and audio tracks of a publish, as records describe them.
import { z } from "@hono/zod-openapi";
import type { PublishTracks } from "../../media.ts";

export const VideoTrack = z.object({
  codec: z.string(),
  width: z.int().nullable(),
  height: z.int().nullable(),
});
export const AudioTrack = z.object({
  codec: z.string(),
  sample_rate: z.int().nullable(),
  channels: z.int().nullable(),
});

export function videoRecord(video: PublishTracks["video"]): z.infer<typeof VideoTrack> | null {
  return video && { codec: video.codec, width: video.width, height: video.height };
}

export function audioRecord(audio: PublishTracks["audio"]): z.infer<typeof AudioTrack> | null {
  return audio && { codec: audio.codec, sample_rate: audio.sampleRate, channels: audio.channels };
}
