// /organisation/audit: who changed what, and when (M15). Administrators only.
import type { Kysely } from "kysely";
import { AUDIT_QUANTITY, AUDIT_WINDOW, listAudit } from "../organisation/audit.ts";
import type { AuditTable, Schema } from "../store/schema.ts";
import { streamNamesOf } from "../store/statements/named-streams.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { text, timeFilters } from "./request/schema.ts";

/** Longest filter, characters: no action or id is longer. */
const FILTER_LIMIT = 64;

const EntryId = z.string().refine((given) => /^\d{1,40}$/.test(given), { params: { type: "id of an entry" } });
const Page = cursorOf("audit", z.tuple([EntryId]));
const Entry = z
  .object({
    id: z.string(),
    at: Time,
    who: z.object({ kind: z.enum(["key", "user", "operator"]), id: z.string().nullable() }),
    action: z.string().openapi({ example: "stream.create" }),
    subject: z.string().openapi({ description: "Id of the changed record" }),
    stream: z
      .object({ id: z.string(), name: z.string(), title: z.string().nullable() })
      .nullable()
      .openapi({ description: "The stream that was changed; null: something else was" }),
    detail: z.record(z.string(), z.unknown()),
    request_id: z.string().nullable().openapi({ description: "x-request-id of the request" }),
  })
  .openapi("AuditEntry");

export const AUDIT_ROUTES = {
  "GET /organisation/audit": {
    tag: "Organisation",
    summary: "Changes, newest first",
    description:
      `With a filter, one request looks at ${AUDIT_WINDOW} entries at most: a page may then be shorter than ` +
      "`quantity` and still have a next one, as x-next-cursor says.",
    query: z.object({
      ...pageQuery(AUDIT_QUANTITY, Page),
      ...timeFilters(),
      action: text({ most: FILTER_LIMIT }).optional().openapi({
        description: "Only this action; given the first part of an action, all that begin with it",
        example: "stream",
      }),
      who: text({ most: FILTER_LIMIT })
        .optional()
        .openapi({ description: "Id of a person or key: only changes made by them" }),
    }),
    answer: z.array(Entry),
  },
} satisfies Declarations;

export function auditRoutes(deps: RouteDeps & { readonly db: Kysely<Schema> }): Routes["hono"] {
  const routes = newRoutes(deps, AUDIT_ROUTES);
  routes.guarded(
    "GET /organisation/audit",
    async (c, { organisation }, { query: { quantity, cursor, action = null, who = null, ...times } }) => {
      const page = {
        quantity: quantity + 1,
        before: cursor?.[0] ?? null,
        action,
        who,
        from: times.from ?? null,
        to: times.to ?? null,
      };
      const positionOf = ({ id }: AuditTable): [string] => [id];
      const { entries: found, rest } = await listAudit(deps.db, organisation.id, page);
      const shown = { quantity, cursor: Page, positionOf };
      const entries = pageOf(c, found, shown, rest === null ? null : [rest]);
      const ids = entries.flatMap(({ action, subject }) => (action.startsWith("stream.") ? [subject] : []));
      const streams = await streamNamesOf(deps.db, organisation.id, ids);
      return c.json(
        entries.map((entry) => ({
          id: entry.id,
          at: new Date(Number(entry.at)).toISOString(),
          who: { kind: entry.who_kind, id: entry.who_id },
          action: entry.action,
          subject: entry.subject,
          stream: streams.get(entry.subject) ?? null,
          detail: JSON.parse(entry.detail) as Record<string, unknown>,
          request_id: entry.request_id,
        })),
      );
    },
  );
  return routes.hono;
}
