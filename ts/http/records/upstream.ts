// An upstream of a stream as callers see it, and as the audit log has it.
import { UPSTREAM_CAUSES, UPSTREAM_STATES } from "../../media/codes.ts";
import type { Change } from "../../organisation/audit.ts";
import type { StreamUpstream } from "../../organisation/upstreams.ts";
import type { LiveUpstream } from "../../publish/live-sessions.ts";
import { maskedKey, shownUpstream } from "../../publish/upstreams/upstream-url.ts";
import { Time, z } from "../openapi.ts";

export const UpstreamCause = z.enum(UPSTREAM_CAUSES);

export const Upstream = z
  .object({
    id: z.uuid(),
    label: z
      .string()
      .nullable()
      .openapi({ description: "The label it was given; null for none", example: "Main channel" }),
    url: z.string().openapi({
      description: "Scheme, host, port and app; stream key, arguments and credentials are never shown again",
      example: "rtmps://live.example:443/app",
    }),
    masked_key: z.string().openapi({
      description: "The first two characters of its stream key; nothing of a key shorter than eight",
      example: "ab…",
    }),
    state: z
      .enum(UPSTREAM_STATES)
      .nullable()
      .openapi({ description: "State of the running push; null while no publish is pushed there" }),
    paused: z.boolean().openapi({ description: "Nothing is pushed there until it is resumed" }),
    last_error: z
      .string()
      .nullable()
      .openapi({ description: "Why the push of the running publish last stopped, in words; null if it never has" }),
    last_cause: UpstreamCause.nullable().openapi({ description: "The same by name" }),
    created_at: Time,
  })
  .openapi("Upstream");

/** Without the stream key, which must not appear in the audit log. */
export function changeOf(action: string, stream: string, more: object = {}): (upstream: StreamUpstream) => Change {
  return ({ id, url, label }) => {
    const detail = { id, url: shownUpstream(url), ...(label === null ? {} : { label }), ...more };
    return { action, subject: stream, detail };
  };
}

/** `live`: the upstreams of the stream's running publish. */
export function upstreamOf(
  { id, url, label, paused, createdAt }: StreamUpstream,
  live: readonly LiveUpstream[],
): z.infer<typeof Upstream> {
  const { state = null, lastError = null, lastCause = null } = live.find((of) => of.id === id) ?? {};
  return {
    id,
    label,
    url: shownUpstream(url),
    masked_key: maskedKey(url),
    state,
    paused,
    last_error: lastError,
    last_cause: lastCause,
    created_at: new Date(createdAt).toISOString(),
  };
}
