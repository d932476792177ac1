// What a request that ends a publish may say: the reason for the broadcaster, and for how long the stream is refused.
import { z } from "@hono/zod-openapi";
import { text } from "./schema.ts";

/** Longest reason for the broadcaster, characters: encoders show no more, and only ASCII. */
const REASON_LIMIT = 200;
const BAD_REASON = `must be at most ${REASON_LIMIT} printable ASCII characters`;
/** Longest refusal, s: a lock is for longer. */
export const REFUSE_LIMIT_S = 3_600;
const BAD_REFUSAL = `must be 0 to ${REFUSE_LIMIT_S}`;

export const EndRequest = z.object({
  reason: text()
    .refine((given) => /^[\x20-\x7e]*$/.test(given) && given.length <= REASON_LIMIT, BAD_REASON)
    .nullable()
    .optional()
    .openapi({ description: "The reason sent to the broadcaster", maxLength: REASON_LIMIT, example: "Off air" }),
  refuse_s: z
    .int()
    .min(0, BAD_REFUSAL)
    .max(REFUSE_LIMIT_S, BAD_REFUSAL)
    .nullable()
    .optional()
    .openapi({
      description:
        "For how many seconds new publishes of the stream are refused with the reason, because encoders reconnect by " +
        "themselves; unlock allows them earlier. Default: 0",
      example: 30,
    }),
});
