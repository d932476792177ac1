// The list of deliveries, newest first: one request looks at a bounded number of them, along an index.
import { type Kysely, type Selectable, sql } from "kysely";
import type { DeliveryTable, Schema } from "../../store/schema.ts";
import { isBehind } from "../../store/statements/newest-first.ts";
import { lastInWindow } from "../../store/statements/window.ts";
import { FAILED_DELIVERY } from "../../store/tables/usage-sums.ts";

/** Deliveries that a request with a filter looks at. */
export const DELIVERY_WINDOW = 5_000;

/** The place of a delivery in the list; its row may be gone. */
export interface DeliveryPosition {
  readonly lastAt: number;
  readonly id: string;
}

export interface DeliveryFilter {
  readonly call: DeliveryTable["call"] | null;
  readonly clientId: number | null;
  readonly name: string | null;
  /** Only those not answered with 200 (publish, update), or 2xx and 410 (publish_done). */
  readonly failed: boolean;
  /** Epoch ms; only older ones, and only from `from` on. */
  readonly before: number | null;
  readonly from?: number | null;
  /** Only those after this one in the order of the list. */
  readonly behind?: DeliveryPosition | null;
  readonly quantity: number;
}

/** `rest`: where the list continues that ended early; null when it is complete, or `rows` are as many as requested. */
export async function listDeliveries(
  db: Kysely<Schema>,
  organisationId: string,
  filter: DeliveryFilter,
): Promise<{ readonly rows: readonly Selectable<DeliveryTable>[]; readonly rest: DeliveryPosition | null }> {
  const { call, clientId, name, failed, before, from = null, behind = null, quantity } = filter;
  const isFiltered = call !== null || failed || name !== null || clientId !== null;
  let near = db.selectFrom("delivery").select(["id", "last_at"]).where("organisation_id", "=", organisationId);
  if (clientId !== null) near = near.where("client_id", "=", clientId);
  else if (name !== null) near = near.where("name", "=", name);
  else if (failed) near = near.where(sql<boolean>`${sql.raw(FAILED_DELIVERY)}`);
  if (from !== null) near = near.where("last_at", ">=", from);
  if (before !== null) near = near.where("last_at", "<", before);
  if (behind !== null) near = near.where(isBehind("last_at", behind.lastAt, behind.id));
  near = near
    .orderBy("last_at", "desc")
    .orderBy("id")
    .limit(isFiltered ? DELIVERY_WINDOW : quantity);
  let query = db.selectFrom(near.as("near")).innerJoin("delivery", "delivery.id", "near.id").selectAll("delivery");
  if (call !== null) query = query.where("delivery.call", "=", call);
  if (name !== null) query = query.where("delivery.name", "=", name);
  if (failed) query = query.where(sql<boolean>`${sql.raw(FAILED_DELIVERY)}`);
  const rows = await query.orderBy("near.last_at", "desc").orderBy("near.id").limit(quantity).execute();
  if (!isFiltered || rows.length >= quantity) return { rows, rest: null };
  const last = await lastInWindow(near, DELIVERY_WINDOW);
  return { rows, rest: last === undefined ? null : { lastAt: Number(last.last_at), id: last.id } };
}
