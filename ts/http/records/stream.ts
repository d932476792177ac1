// The stream record (M9) in the OpenAPI document.
import { Time, z } from "../openapi.ts";

const StreamState = z.enum(["created", "live", "ended", "locked", "deleted"]).openapi("StreamState");
const Tags = z
  .array(z.string().max(100))
  .max(50)
  .openapi({ example: ["studio-1"] });

const StreamKey = z.string().openapi({
  description: "What an encoder sends: the name, and `?key=…` if publishes need the publish key",
  example: "Ab1Cd-9XyZ0",
});

export const Stream = z
  .object({
    id: z.uuid(),
    streamgroup: z.uuid(),
    state: StreamState,
    type: z.literal("low-latency"),
    created_at: Time,
    updated_at: Time,
    tags: Tags,
    hold_s: z.int().nullable().openapi({ description: "See PUT /stream/{id}/hold", example: null }),
    publish_key: z
      .boolean()
      .nullable()
      .openapi({ description: "See PUT /stream/{id}/key; null: the organisation's setting applies", example: null }),
    refused_until: Time.nullable().openapi({ description: "Until then publishes are refused after an end" }),
    webrtc: z.literal(true),
    transcoding: z.literal(false),
    ingest: z.object({
      rtmp: z.object({
        url: z.string().openapi({ example: "rtmp://ingest.example:1935/live" }),
        streamname: z.string().openapi({ example: "Ab1Cd-9XyZ0" }),
        stream_key: StreamKey,
      }),
      rtmps: z
        .object({ url: z.string(), streamname: z.string(), stream_key: StreamKey })
        .nullable()
        .openapi({ description: "null when this Headgate has no certificate for RTMPS" }),
      whip: z.object({ url: z.string().openapi({ description: "With the publish key, if publishes need one" }) }),
      key: z.string().nullable().openapi({
        description: "The publish key; null: publishes need none; `…` here and in the addresses for the role readonly",
        example: null,
      }),
    }),
    playout: z.object({
      rtmp: z.array(z.object({ url: z.string(), streamname: z.string(), type: z.literal("live") })),
      hls: z.array(z.unknown()),
      web: z.array(z.unknown()),
    }),
  })
  .openapi("Stream");
