// /organisation/audit: who changed what, and when (M15). Administrators only.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { WrongDataType } from "../errors.ts";
import { AUDIT_QUANTITY, listAudit } from "../organisation/audit.ts";
import type { Authorise } from "../organisation/callers.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type Routes, Time, z } from "./openapi.ts";
import { quantityOf } from "./request/request.ts";

const Entry = z
  .object({
    id: z.string(),
    at: Time,
    who: z.object({ kind: z.enum(["key", "user", "operator"]), id: z.string().nullable() }),
    action: z.string().openapi({ example: "stream.create" }),
    subject: z.string().openapi({ description: "Id of what was changed" }),
    detail: z.record(z.string(), z.unknown()),
    request_id: z.string().nullable().openapi({ description: "x-request-id of the request" }),
  })
  .openapi("AuditEntry");

export function auditRoutes(deps: { readonly db: Kysely<Schema>; readonly authorise: Authorise }): Routes["hono"] {
  const routes = newRoutes(deps.authorise);
  routes.guarded(
    "GET /organisation/audit",
    {
      tag: "Organisation",
      summary: "Changes, newest first",
      query: z.object({
        quantity: z
          .int()
          .min(1)
          .optional()
          .openapi({
            description: `Default ${AUDIT_QUANTITY.standard}, at most ${AUDIT_QUANTITY.most}`,
          }),
        before: z.string().optional().openapi({ description: "Only entries older than the one of this id" }),
      }),
      answer: z.array(Entry),
    },
    async (c, { organisation }) => {
      const entries = await listAudit(deps.db, organisation.id, {
        quantity: quantityOf(c, AUDIT_QUANTITY),
        before: beforeOf(c),
      });
      return c.json(
        entries.map((entry) => ({
          id: entry.id,
          at: new Date(Number(entry.at)).toISOString(),
          who: { kind: entry.who_kind, id: entry.who_id },
          action: entry.action,
          subject: entry.subject,
          detail: JSON.parse(entry.detail) as Record<string, unknown>,
          request_id: entry.request_id,
        })),
      );
    },
  );
  return routes.hono;
}

function beforeOf(c: Context): string | null {
  const before = c.req.query("before");
  if (before === undefined) return null;
  if (!/^\d{1,40}$/.test(before)) throw new WrongDataType("before", "id of an entry");
  return before;
}
