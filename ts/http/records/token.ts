// A web token or play token in the list of those that were created, in the API and at the command line.
import type { NameOf } from "../../organisation/reads/names.ts";
import type { ListedToken } from "../../token/token-list.ts";
import { Time, z } from "../openapi.ts";

export const Token = z
  .object({
    id: z.string().openapi({ description: "Its jti", example: "0d5c1f6e-4f0c-4b1e-9a57-2f3a3b6f2c11" }),
    kind: z.enum(["broadcast", "play"]).openapi({
      description: "broadcast: a web token, as in a broadcast link; play: a token for players",
    }),
    state: z.enum(["valid", "expired", "revoked"]),
    streamname: z
      .string()
      .openapi({ description: "The stream name in it, without custom arguments", example: "Ab1Cd-9XyZ0" }),
    stream: z
      .object({ id: z.string(), name: z.string() })
      .nullable()
      .openapi({ description: "null: the organisation has no stream with this name" }),
    made_by: z
      .object({
        kind: z.enum(["key", "user", "operator"]),
        id: z.string().nullable(),
        name: z.string().nullable().openapi({
          description:
            "E-mail address of the person, or label of the key; null: none, no longer known, or the caller is an API key that is not an administrator's",
          example: "ada@customer.example",
        }),
      })
      .openapi({ description: "The person or key that created it, as in /organisation/audit" }),
    created_at: Time,
    expires_at: Time,
    last_used_at: Time.nullable().openapi({
      description: "When a publish or play was last allowed with it, to the minute",
    }),
    revoked_at: Time.nullable(),
  })
  .openapi("Token");

/** `now`: epoch ms. */
export function tokenRecord(token: ListedToken, nameOf: NameOf, now: number): z.infer<typeof Token> {
  const { id, kind, name, stream, who, made_at, expires_at, last_used_at, revoked_at } = token;
  const time = (at: number) => new Date(at).toISOString();
  return {
    id,
    kind,
    streamname: name,
    stream,
    state: revoked_at !== null ? "revoked" : expires_at <= now ? "expired" : "valid",
    made_by: { ...who, name: nameOf(who) },
    created_at: time(made_at),
    expires_at: time(expires_at),
    last_used_at: last_used_at === null ? null : time(last_used_at),
    revoked_at: revoked_at === null ? null : time(revoked_at),
  };
}
