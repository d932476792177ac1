// Bytes per stream and day (UTC): growth of a publish's counters is added to the day on which it was observed, in the
// same transaction. So the days of a stream sum up to the totals of its publish_done events (W8).
import { type CompiledQuery, type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "../../store/schema.ts";

/** Adds the growth of an open publish's counters. Must run before the update of the publish's own row. */
export function addUsage(
  db: Kysely<Schema>,
  counters: {
    readonly clientId: number;
    readonly bytesIn: number;
    readonly bytesOut: number;
    /** Condition that its row must meet. */
    readonly whose: RawBuilder<boolean>;
  },
  now: number,
): CompiledQuery {
  const { clientId, bytesIn, bytesOut, whose } = counters;
  return sql`
    insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
    select stream_id, cast(${dayOf(now)} as text), organisation_id,
      cast(${bytesIn} as bigint) - bytes_in, cast(${bytesOut} as bigint) - bytes_out
    from publish
    where client_id = ${clientId} and state in ('asking', 'live') and ${whose}
      and (bytes_in <> cast(${bytesIn} as bigint) or bytes_out <> cast(${bytesOut} as bigint))
    on conflict (stream_id, day) do update
      set bytes_in = "usage".bytes_in + excluded.bytes_in, bytes_out = "usage".bytes_out + excluded.bytes_out
  `.compile(db);
}

/** `2026-01-31`, UTC. */
export function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, "2026-01-31".length);
}
