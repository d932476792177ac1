// Paginated lists (M16): `quantity` and an opaque `cursor` in the query; Link and x-next-cursor say where the next page
// begins. A cursor is the position after which a page begins, so it stays valid whatever is added or removed meanwhile.
import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { type QuantityLimits, quantity } from "./schema.ts";

/** Longest cursor accepted, characters. */
const CURSOR_LIMIT = 512;

/** Why a cursor is rejected. */
export const UNKNOWN_CURSOR = "is not a cursor of this list";

/** One kind of position: the key by which the rows of a list are ordered. `list` prevents using a cursor of another
 *  list. */
export interface CursorOf<Position> {
  readonly query: z.ZodType<Position | undefined>;
  textOf(position: Position): string;
}

export function cursorOf<Parts extends z.ZodType>(list: string, parts: Parts): CursorOf<z.output<Parts>> {
  const whole = z.tuple([z.literal(list), z.unknown()]);
  const query = z
    .string()
    .max(CURSOR_LIMIT, UNKNOWN_CURSOR)
    .transform((given, issues) => {
      const { data: content } = whole.safeParse(contentOf(given));
      const { data, success } = parts.safeParse(content?.[1]);
      if (success) return data;
      issues.addIssue({ code: "custom", message: UNKNOWN_CURSOR });
      return z.NEVER;
    })
    .optional()
    .openapi({
      type: "string",
      description: "Where the page begins: x-next-cursor of the previous page. Opaque.",
      example: "WyJzdHJlYW0iLFsxXV0",
    });
  return {
    query,
    textOf: (position) => Buffer.from(JSON.stringify([list, position])).toString("base64url"),
  };
}

function contentOf(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return null;
  }
}

/** The query parameters of a list. */
export function pageQuery<Position>(limits: QuantityLimits, cursor: CursorOf<Position>) {
  return { quantity: quantity(limits), cursor: cursor.query };
}

/** The page within `rows`, which contain one more than `quantity` when another page follows; the response then says
 *  where that begins. `rest`: where the list continues although `rows` do not fill the page, because the store stopped
 *  looking for more; null when there is no more. */
export function pageOf<Row, Position>(
  c: Context,
  rows: readonly Row[],
  page: { readonly quantity: number; readonly cursor: CursorOf<Position>; readonly positionOf: (row: Row) => Position },
  rest: Position | null = null,
): readonly Row[] {
  const shown = rows.slice(0, page.quantity);
  const last = shown.at(-1);
  const position = rows.length > page.quantity && last !== undefined ? page.positionOf(last) : rest;
  if (position === null) return shown;
  const next = page.cursor.textOf(position);
  const { pathname, searchParams } = new URL(c.req.url);
  searchParams.set("cursor", next);
  c.header("x-next-cursor", next);
  c.header("link", `<${pathname}?${searchParams}>; rel="next"`);
  return shown;
}
