// A refused publish or play, in the API and at the command line.
import { REFUSAL_REASONS, reasonWords } from "../../publish/refusals/reasons.ts";
import type { PastRefusal } from "../../publish/refusals/refusal-list.ts";
import { Time, z } from "../openapi.ts";

export const Refusal = z
  .object({
    id: z.string(),
    at: Time.openapi({ description: "When the first one was refused" }),
    last_at: Time.openapi({ description: "When the last one was refused" }),
    count: z.int().openapi({
      description:
        "Equal refusals that begin within the same ten minutes are one entry: same stream or name, address, protocol and reason",
      example: 1,
    }),
    request: z.enum(["publish", "play"]).openapi({ description: "What was refused" }),
    protocol: z.enum(["rtmp", "whip", "v5"]).nullable(),
    reason: z
      .enum(REFUSAL_REASONS)
      .openapi({ description: "A stable code; new ones may be added", example: "locked_stream" }),
    reason_words: z.string().openapi({ description: "reason in words", example: "The stream is locked." }),
    detail: z.string().nullable().openapi({ description: "What the last one was told", example: "Stream is locked" }),
    address: z
      .string()
      .nullable()
      .openapi({ description: "null: several addresses, or no longer kept", example: "203.0.113.7" }),
    stream: z
      .object({ id: z.string(), name: z.string(), title: z.string().nullable() })
      .nullable()
      .openapi({ description: "null: no stream, or several" }),
    sent_name: z
      .string()
      .nullable()
      .openapi({ description: "For the operator: the name that was sent, where no stream has it" }),
    client_id: z
      .int()
      .nullable()
      .openapi({ description: "clientid of the webhook; null: it was not asked", example: 100_482 }),
    webhook_status: z.int().nullable().openapi({
      description: "HTTP status of the webhook, if that denied it; null as well for denials before migration 0032",
      example: 403,
    }),
  })
  .openapi("Refusal");

/** `reason` of a row of another version may not be in the list. */
export function refusalRecord(
  refusal: PastRefusal,
): Omit<z.infer<typeof Refusal>, "reason"> & { readonly reason: string } {
  const { id, request, protocol, reason, detail, address, stream, sentName, clientId, count, status } = refusal;
  return {
    id,
    at: new Date(refusal.firstAt).toISOString(),
    last_at: new Date(refusal.lastAt).toISOString(),
    count,
    request,
    protocol,
    reason,
    reason_words: reasonWords(reason, status),
    detail,
    address,
    stream,
    sent_name: sentName,
    client_id: clientId,
    webhook_status: status,
  };
}
