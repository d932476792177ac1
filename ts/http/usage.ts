// /organisation/usage: bytes per stream and day, the same measure as in publish_done (W8).
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import {
  everyDay,
  readUsage,
  TAGGED_ROWS_LIMIT,
  USAGE_SPAN_LIMIT_DAYS,
  type UsageOfDay,
} from "../organisation/usage.ts";
import type { Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { text } from "./request/schema.ts";

const DAY_MS = 86_400_000;
/** Days returned by default. */
const SPAN_DEFAULT_DAYS = 30;
/** Rows of one page: a month of a hundred streams. */
const QUANTITY = { standard: 3_100, most: 10_000 } as const;

/** How long a portion of a table waits for its turn, ms. */
const PORTION_WAIT_MS = 30_000;

const bytes = {
  bytes_in: z.int().openapi({ description: "Audio and video bytes received from encoders" }),
  bytes_out: z
    .int()
    .openapi({ description: "Audio and video bytes sent to upstreams and players, counted the same way" }),
};
const Day = z.string().openapi({ description: "A day in UTC", example: "2026-01-31" });
/** Days and page position as given in a request. */
const GivenDay = z
  .string()
  .refine((given) => msOfDay(given) !== null, { params: { type: "day (YYYY-MM-DD)" } })
  .transform((given) => msOfDay(given) ?? 0)
  .openapi({ type: "string", format: "date", example: "2026-01-31" });
const Page = cursorOf("usage", z.tuple([text(), text()]));
const Usage = z
  .object({
    from: Day,
    to: Day,
    total: z.object(bytes),
    days: z.array(z.object({ day: Day, stream: z.uuid(), streamname: z.string(), ...bytes })),
  })
  .openapi("Usage");

export const USAGE_ROUTES = {
  "GET /organisation/usage": {
    tag: "Organisation",
    summary: "Bytes in and out, per stream and day",
    description:
      "A running publish is counted without at most its last 10 seconds. The days of a publish add up to the bytes_in and " +
      `bytes_out of its publish_done. Default: the last ${SPAN_DEFAULT_DAYS} days; at most ${USAGE_SPAN_LIMIT_DAYS}. ` +
      `\`total\` covers the whole span, \`days\` is a page of at most ${QUANTITY.most} rows. ` +
      `With a key of one tag the span may have at most ${TAGGED_ROWS_LIMIT} rows of the organisation; csv has no such limit.`,
    query: z.object({
      ...pageQuery(QUANTITY, Page),
      from: GivenDay.optional().openapi({ description: "The first day" }),
      to: GivenDay.optional().openapi({ description: "The last day; default: today" }),
      format: z
        .enum(["json", "csv"])
        .default("json")
        .openapi({ description: "csv: a table of the whole span, with one row per day and stream" }),
      stream: text().optional().openapi({ description: "Id of a stream: only its bytes" }),
    }),
    answer: Usage,
    alsoAnswers: "text/csv",
  },
} satisfies Declarations;

export function usageRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
  },
): Routes["hono"] {
  const routes = newRoutes(deps, USAGE_ROUTES);
  routes.guarded(
    "GET /organisation/usage",
    async (c, { organisation, scopeTag }, { query: { quantity, cursor, format, stream = null, ...query } }) => {
      const span = spanOf(query, deps.clock.now());
      if (format === "csv") {
        if (cursor !== undefined) throw new InvalidValue("cursor", "cannot be used with csv");
        c.header("content-type", "text/csv; charset=utf-8; header=present");
        c.header("content-disposition", `attachment; filename="usage-${span.from}-${span.to}.csv"`);
        const portions = everyDay(deps.db, organisation.id, { ...span, stream, tag: scopeTag });
        // Each portion takes its turn among the reads of the organisation.
        const next = () => deps.readLimits.run(organisation.id, () => portions.next(), PORTION_WAIT_MS);
        return c.body(csvOf({ next, return: () => portions.return(undefined) }));
      }
      const [day, id] = cursor ?? [];
      const after = day === undefined || id === undefined ? null : { day, stream: id };
      const page = { after, quantity: quantity + 1 };
      const { total, days } = await readUsage(deps.db, organisation.id, { ...span, stream, tag: scopeTag, ...page });
      const positionOf = (row: UsageOfDay): [string, string] => [row.day, row.stream];
      const shown = pageOf(c, days, { quantity, cursor: Page, positionOf });
      return c.json({ ...span, total, days: shown });
    },
  );
  return routes.hono;
}

/** CSV (RFC 4180), streamed; no rows are read ahead of the reader. */
function csvOf(portions: {
  next(): Promise<IteratorResult<readonly UsageOfDay[], void>>;
  return(): Promise<unknown>;
}): ReadableStream<Uint8Array> {
  const lines = ["day,stream,streamname,bytes_in,bytes_out"];
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value: rows, done } = await portions.next();
        if (done) return controller.close();
        lines.push(
          ...rows.map((row) => [row.day, row.stream, row.streamname, row.bytes_in, row.bytes_out].map(cell).join()),
        );
        controller.enqueue(
          Buffer.from(
            lines
              .splice(0)
              .map((line) => `${line}\r\n`)
              .join(""),
          ),
        );
      },
      async cancel() {
        await portions.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Escapes what a spreadsheet would interpret as a formula. */
function cell(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** `from` and `to`: epoch ms. */
function spanOf(
  given: { readonly from?: number | undefined; readonly to?: number | undefined },
  now: number,
): { readonly from: string; readonly to: string } {
  const to = given.to ?? now;
  const from = given.from ?? to - (SPAN_DEFAULT_DAYS - 1) * DAY_MS;
  if (from > to) throw new InvalidValue("from", "must not be after to");
  if (to - from >= USAGE_SPAN_LIMIT_DAYS * DAY_MS) {
    throw new InvalidValue("from", `must be within ${USAGE_SPAN_LIMIT_DAYS} days of to`);
  }
  return { from: dayText(from), to: dayText(to) };
}

/** A day as epoch ms; null for text that is not one. */
function msOfDay(text: string): number | null {
  const ms = /^(19|2\d)\d\d-\d\d-\d\d$|^2\d{3}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // Some parsers move dates like 2026-02-31 to March.
  return Number.isNaN(ms) || dayText(ms) !== text ? null : ms;
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, "2026-01-31".length);
}
