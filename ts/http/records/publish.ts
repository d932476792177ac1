// A publish in the history of its stream, in the API and at the command line.
import type { NameOf } from "../../organisation/reads/names.ts";
import { END_CODES, type Ending } from "../../publish/ending/ending.ts";
import type { PastPublish } from "../../publish/monitoring/publish-list.ts";
import { reasonWords } from "../../publish/refusals/reasons.ts";
import { Time, z } from "../openapi.ts";
import { AudioTrack, audioRecord, VideoTrack, videoRecord } from "./tracks.ts";

export const Publish = z
  .object({
    client_id: z.int().openapi({ description: "clientid of the webhook" }),
    state: z
      .enum(["asking", "denied", "live", "ended"])
      .openapi({ description: "asking: waiting for the webhook's answer" }),
    protocol: z.enum(["rtmp", "whip"]).nullable(),
    address: z
      .string()
      .nullable()
      .openapi({ description: "Address of the broadcaster; for denied publishes kept for some days only" }),
    asked_at: Time,
    accepted_at: Time.nullable(),
    ended_at: Time.nullable(),
    continues: z.int().nullable().openapi({
      description: "client_id of the lost publish whose upstreams and players this one took over; null for none",
    }),
    end_reason: z.string().nullable().openapi({ example: "broadcaster_left" }),
    end_words: z
      .string()
      .nullable()
      .openapi({ description: "end_reason in words", example: "The connection to the broadcaster was lost." }),
    end: z
      .object({
        code: z.string().openapi({ example: "ended_by_person" }),
        by: z.string().openapi({ description: "What the broadcaster is told", example: "person" }),
        who: z
          .object({
            kind: z.enum(["key", "user", "operator"]),
            id: z.string().nullable(),
            name: z.string().nullable().openapi({
              description:
                "E-mail address of the person, or label of the key; null: none, no longer known, or the caller is an API key that is not an administrator's",
              example: "ada@customer.example",
            }),
          })
          .nullable()
          .openapi({ description: "The person or key, as in /organisation/audit" }),
        reason: z.string().openapi({ description: "The reason sent to the broadcaster", example: "Off air" }),
      })
      .nullable()
      .openapi({ description: "Who asked for the end; null for nobody" }),
    denial: z
      .object({
        cause: z.string().openapi({ example: "rejected_by_customer" }),
        reason: z.string().openapi({ description: "The reason sent to the broadcaster", example: "Unknown passcode" }),
        webhook_status: z.int().nullable().openapi({ description: "HTTP status of the webhook, if that denied it" }),
        words: z.string().openapi({
          description: "What happened, for the people of the organisation",
          example: "Your webhook failed (status 500).",
        }),
      })
      .nullable(),
    bytes_in: z.int(),
    bytes_out: z.int(),
    video: VideoTrack.nullable(),
    audio: AudioTrack.nullable(),
    dropped_frames: z.int().nullable().openapi({ description: "Frames dropped on the way to players and upstreams" }),
  })
  .openapi("Publish");

/** `nameOf`: from `namesOf`, or a function that gives null to those who see no names. */
export function publishRecord(publish: PastPublish, nameOf: NameOf): z.infer<typeof Publish> {
  return {
    client_id: publish.clientId,
    state: publish.state,
    protocol: publish.protocol,
    address: publish.address,
    asked_at: timeText(publish.askedAt),
    accepted_at: timeText(publish.acceptedAt),
    ended_at: timeText(publish.endedAt),
    continues: publish.continues,
    end_reason: publish.endReason,
    end_words: publish.endWords,
    end: publish.ending && endRecord(publish.ending, nameOf),
    denial: publish.denial && denialRecord(publish.denial),
    bytes_in: publish.bytesIn,
    bytes_out: publish.bytesOut,
    video: videoRecord(publish.video),
    audio: audioRecord(publish.audio),
    dropped_frames: publish.droppedFrames,
  };
}

function denialRecord({ cause, reason, status }: NonNullable<PastPublish["denial"]>) {
  return { cause, reason, webhook_status: status, words: reasonWords(cause, status) };
}

function endRecord({ code, who, reason }: Ending, nameOf: NameOf) {
  return { code, by: END_CODES[code].by, who: who && { ...who, name: nameOf(who) }, reason };
}

function timeText<Ms extends number | null>(ms: Ms): Ms extends number ? string : string | null;
function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
