// Bytes per stream and day, as publish/daily-bytes.ts wrote them: read and summed here.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import { hasTag } from "./streams.ts";

/** Longest span that is asked for at once, days. */
export const USAGE_SPAN_LIMIT_DAYS = 366;

export interface Usage {
  readonly bytes_in: number;
  readonly bytes_out: number;
}

export interface UsageOfDay extends Usage {
  /** `2026-01-31`, UTC. */
  readonly day: string;
  readonly stream: string;
  readonly streamname: string;
}

/** Bytes of the days `from` to `to` (both counted): their sum, and a page of them by day and stream. `stream`, `tag`: only
 *  of that stream, of streams with that tag; `after`: behind this day and stream. */
export async function readUsage(
  db: Kysely<Schema>,
  organisationId: string,
  span: {
    readonly from: string;
    readonly to: string;
    readonly stream: string | null;
    readonly tag: string | null;
    readonly after: { readonly day: string; readonly stream: string } | null;
    readonly quantity: number;
  },
): Promise<{ readonly total: Usage; readonly days: readonly UsageOfDay[] }> {
  let query = db
    .selectFrom("usage")
    .innerJoin("stream", "stream.id", "usage.stream_id")
    .where("usage.organisation_id", "=", organisationId)
    .where("usage.day", ">=", span.from)
    .where("usage.day", "<=", span.to);
  if (span.stream !== null) query = query.where("usage.stream_id", "=", span.stream);
  if (span.tag !== null) query = query.where(hasTag(span.tag));
  const total = await query
    .select((eb) => [eb.fn.sum("usage.bytes_in").as("bytes_in"), eb.fn.sum("usage.bytes_out").as("bytes_out")])
    .executeTakeFirstOrThrow();
  const { after } = span;
  if (after !== null) {
    query = query.where((eb) =>
      eb.or([
        eb("usage.day", ">", after.day),
        eb.and([eb("usage.day", "=", after.day), eb("usage.stream_id", ">", after.stream)]),
      ]),
    );
  }
  const rows = await query
    .select(["usage.day", "usage.stream_id", "stream.name", "usage.bytes_in", "usage.bytes_out"])
    .orderBy("usage.day")
    .orderBy("usage.stream_id")
    .limit(span.quantity)
    .execute();
  const days = rows.map((row) => ({
    day: row.day,
    stream: row.stream_id,
    streamname: row.name,
    bytes_in: Number(row.bytes_in),
    bytes_out: Number(row.bytes_out),
  }));
  return { total: { bytes_in: Number(total.bytes_in ?? 0), bytes_out: Number(total.bytes_out ?? 0) }, days };
}
