// Reads and sums the bytes per stream and day that publish/bytes/daily-bytes.ts writes.
import { type Kysely, sql } from "kysely";
import { InvalidValue } from "../errors.ts";
import type { Schema } from "../store/schema.ts";
import { lastInWindow } from "../store/statements/window.ts";
import { hasTag } from "./streams.ts";

/** Longest span of one request, days. */
export const USAGE_SPAN_LIMIT_DAYS = 366;

export interface Usage {
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** The days requested, and a page of them. */
export interface UsageSpan {
  /** `2026-01-31`, UTC; both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Only that stream, and only streams with that tag. */
  readonly stream: string | null;
  readonly tag: string | null;
  /** Only after this day and stream. */
  readonly after: { readonly day: string; readonly stream: string } | null;
  readonly quantity: number;
}

export interface UsageOfDay extends Usage {
  /** `2026-01-31`, UTC. */
  readonly day: string;
  readonly stream: string;
  readonly streamname: string;
}

/** Rows read at a time for a table of the whole span. */
const PORTION = 500;
/** Rows, of streams with and without the tag, that one statement looks at for such a table. */
const TABLE_WINDOW = 5_000;
/** Rows, of streams with and without the tag, in a span that is summed by tag. */
export const TAGGED_ROWS_LIMIT = 20_000;

/** Every row of a span, as `readUsage` returns them, in portions: a year of many streams is never held in memory at
 *  once. */
export async function* everyDay(
  db: Kysely<Schema>,
  organisationId: string,
  span: Pick<UsageSpan, "from" | "to" | "stream" | "tag">,
): AsyncGenerator<readonly UsageOfDay[], void, undefined> {
  if (span.tag !== null && span.stream === null) return yield* everyTaggedDay(db, organisationId, span);
  for (let after: UsageSpan["after"] = null; ; ) {
    const days = await daysOf(usageOf(db, organisationId, span), { after, quantity: PORTION });
    yield days;
    const last = days.at(-1);
    if (last === undefined || days.length < PORTION) return;
    after = { day: last.day, stream: last.stream };
  }
}

/** The same by tag, which may be that of few streams: portions may be small, or empty. */
async function* everyTaggedDay(
  db: Kysely<Schema>,
  organisationId: string,
  span: Pick<UsageSpan, "from" | "to" | "stream" | "tag">,
): AsyncGenerator<readonly UsageOfDay[], void, undefined> {
  for (let after: UsageSpan["after"] = null; ; ) {
    let positions = rowsIn(db, organisationId, span).select(["day", "stream_id"]);
    if (after !== null) positions = positions.where(isBehind(after));
    positions = positions.orderBy("day").orderBy("stream_id").limit(TABLE_WINDOW);
    const near = usageOf(db, organisationId, span).innerJoin(positions.as("near"), (join) =>
      join.onRef("near.day", "=", "usage.day").onRef("near.stream_id", "=", "usage.stream_id"),
    );
    yield await daysOf(near as ReturnType<typeof usageOf>, { after: null, quantity: TABLE_WINDOW });
    const last = await lastInWindow(positions, TABLE_WINDOW);
    if (last === undefined) return;
    after = { day: last.day, stream: last.stream_id };
  }
}

/** The usage of a span: the sum, and a page of rows by day and stream. By tag it rejects with `InvalidValue` for a span
 *  with too many rows. */
export async function readUsage(
  db: Kysely<Schema>,
  organisationId: string,
  span: UsageSpan,
): Promise<{ readonly total: Usage; readonly days: readonly UsageOfDay[] }> {
  if (span.tag !== null && span.stream === null) await checkSpan(db, organisationId, span);
  const [total, days] = await Promise.all([
    totalOf(db, organisationId, span),
    daysOf(usageOf(db, organisationId, span), span),
  ]);
  return { total: { bytes_in: Number(total.bytes_in ?? 0), bytes_out: Number(total.bytes_out ?? 0) }, days };
}

/** Nothing is summed ahead for tags, so the span bounds what is looked at. */
async function checkSpan(db: Kysely<Schema>, organisationId: string, span: UsageSpan): Promise<void> {
  const further = await rowsIn(db, organisationId, span)
    .select("day")
    .orderBy("day")
    .orderBy("stream_id")
    .offset(TAGGED_ROWS_LIMIT)
    .limit(1)
    .executeTakeFirst();
  if (further === undefined) return;
  const limit = `more than ${TAGGED_ROWS_LIMIT} records of the organisation, too many to find those with a tag`;
  throw new InvalidValue("from", `spans ${limit}: choose fewer days, one stream, or format=csv`);
}

/** Of all streams of an organisation the sums of each day are known. */
async function totalOf(db: Kysely<Schema>, organisationId: string, span: UsageSpan) {
  if (span.stream !== null || span.tag !== null) {
    return await usageOf(db, organisationId, span)
      .select((eb) => [eb.fn.sum("usage.bytes_in").as("bytes_in"), eb.fn.sum("usage.bytes_out").as("bytes_out")])
      .executeTakeFirstOrThrow();
  }
  return await db
    .selectFrom("usage_sum")
    .where("organisation_id", "=", organisationId)
    .where("day", ">=", span.from)
    .where("day", "<=", span.to)
    .select((eb) => [eb.fn.sum("bytes_in").as("bytes_in"), eb.fn.sum("bytes_out").as("bytes_out")])
    .executeTakeFirstOrThrow();
}

/** The rows of a span, whatever their streams. */
function rowsIn(db: Kysely<Schema>, organisationId: string, { from, to }: Pick<UsageSpan, "from" | "to">) {
  return db
    .selectFrom("usage")
    .where("organisation_id", "=", organisationId)
    .where("day", ">=", from)
    .where("day", "<=", to);
}

/** A range of the index usage_in_order, of which nothing before the position is read. */
function isBehind({ day, stream }: NonNullable<UsageSpan["after"]>) {
  return sql<boolean>`("usage".day, "usage".stream_id) > (${day}, ${stream})`;
}

function usageOf(db: Kysely<Schema>, organisationId: string, span: Pick<UsageSpan, "from" | "to" | "stream" | "tag">) {
  let query = db
    .selectFrom("usage")
    .innerJoin("stream", "stream.id", "usage.stream_id")
    .where("usage.organisation_id", "=", organisationId)
    .where("usage.day", ">=", span.from)
    .where("usage.day", "<=", span.to);
  if (span.stream !== null) query = query.where("usage.stream_id", "=", span.stream);
  if (span.tag !== null) query = query.where(hasTag(span.tag));
  return query;
}

async function daysOf(
  all: ReturnType<typeof usageOf>,
  { after, quantity }: Pick<UsageSpan, "after" | "quantity">,
): Promise<readonly UsageOfDay[]> {
  let query = all;
  if (after !== null) {
    query = query.where(isBehind(after));
  }
  const rows = await query
    .select(["usage.day", "usage.stream_id", "stream.name", "usage.bytes_in", "usage.bytes_out"])
    .orderBy("usage.day")
    .orderBy("usage.stream_id")
    .limit(quantity)
    .execute();
  return rows.map((row) => ({
    day: row.day,
    stream: row.stream_id,
    streamname: row.name,
    bytes_in: Number(row.bytes_in),
    bytes_out: Number(row.bytes_out),
  }));
}
