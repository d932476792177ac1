// /organisation/usage: bytes per stream and day, the same measure as in publish_done (W8).
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { InvalidValue, WrongDataType } from "../errors.ts";
import type { Authorise } from "../organisation/callers.ts";
import { readUsage, USAGE_SPAN_LIMIT_DAYS } from "../organisation/usage.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type Routes, z } from "./openapi.ts";
import { quantityOf, storableQuery } from "./request/request.ts";

const DAY_MS = 86_400_000;
/** Days that are told when nothing else is asked for. */
const SPAN_DEFAULT_DAYS = 30;
/** Rows of one page: a month of a hundred streams. */
const QUANTITY = { standard: 3_100, most: 10_000 } as const;

const bytes = {
  bytes_in: z.int().openapi({ description: "Audio and video bytes received from encoders" }),
  bytes_out: z.int().openapi({ description: "The same measure, handed to upstreams and players" }),
};
const Day = z.string().openapi({ description: "A day in UTC", example: "2026-01-31" });
const Usage = z
  .object({
    from: Day,
    to: Day,
    total: z.object(bytes),
    days: z.array(z.object({ day: Day, stream: z.uuid(), streamname: z.string(), ...bytes })),
    next: z.string().nullable().openapi({ description: "`after` of the next page; null when there is none" }),
  })
  .openapi("Usage");

export function usageRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
}): Routes["hono"] {
  const routes = newRoutes(deps.authorise);
  routes.guarded(
    "GET /organisation/usage",
    {
      tag: "Organisation",
      summary: "Bytes in and out, per stream and day",
      description:
        "A running publish is counted up to the last 10 seconds. The days of a publish sum up to the bytes_in and " +
        `bytes_out of its publish_done. Default: the last ${SPAN_DEFAULT_DAYS} days; at most ${USAGE_SPAN_LIMIT_DAYS}. ` +
        `\`total\` is of the whole span, \`days\` a page of at most ${QUANTITY.most}.`,
      query: z.object({
        from: Day.optional(),
        to: Day.optional(),
        stream: z.string().optional(),
        quantity: z.coerce.number().int().optional(),
        after: z.string().optional(),
      }),
      answer: Usage,
    },
    async (c, { organisation, scopeTag }) => {
      const span = spanOf(c, deps.clock.now());
      const stream = storableQuery(c, "stream");
      const quantity = quantityOf(c, QUANTITY);
      const page = { after: afterOf(c), quantity: quantity + 1 };
      const { total, days } = await readUsage(deps.db, organisation.id, { ...span, stream, tag: scopeTag, ...page });
      const shown = days.slice(0, quantity);
      const last = days.length > quantity ? shown.at(-1) : undefined;
      return c.json({ ...span, total, days: shown, next: last === undefined ? null : `${last.day}/${last.stream}` });
    },
  );
  return routes.hono;
}

function spanOf(c: Context, now: number): { readonly from: string; readonly to: string } {
  const to = dayOf(c, "to") ?? now;
  const from = dayOf(c, "from") ?? to - (SPAN_DEFAULT_DAYS - 1) * DAY_MS;
  if (from > to) throw new InvalidValue("from", "must not be after to");
  if (to - from >= USAGE_SPAN_LIMIT_DAYS * DAY_MS) {
    throw new InvalidValue("from", `must be within ${USAGE_SPAN_LIMIT_DAYS} days of to`);
  }
  return { from: dayText(from), to: dayText(to) };
}

/** As `next` gave it. */
function afterOf(c: Context): { readonly day: string; readonly stream: string } | null {
  const after = storableQuery(c, "after");
  if (after === null) return null;
  const [, day, stream] = /^(\d{4}-\d\d-\d\d)\/([\w -]{1,64})$/.exec(after) ?? [];
  if (day === undefined || stream === undefined) throw new WrongDataType("after", "next of a page");
  return { day, stream };
}

function dayOf(c: Context, name: string): number | null {
  const text = c.req.query(name);
  if (text === undefined) return null;
  const ms = /^(19|2\d)\d\d-\d\d-\d\d$|^2\d{3}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // Dates like 2026-02-31 are moved to March by some readers.
  if (Number.isNaN(ms) || dayText(ms) !== text) throw new WrongDataType(name, "day (YYYY-MM-DD)");
  return ms;
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, "2026-01-31".length);
}
