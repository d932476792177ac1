// The list of deliveries, newest first: one request looks at a bounded number of them, along an index.
import { type Kysely, type Selectable, sql } from "kysely";
import type { DeliveryTable, Schema } from "../../store/schema.ts";
import { isBehind } from "../../store/statements/newest-first.ts";
import { lastInWindow } from "../../store/statements/window.ts";
import { FAILED_DELIVERY } from "../../store/tables/usage-sums.ts";

/** Deliveries that a request with a filter looks at. */
export const DELIVERY_WINDOW = 5_000;

/** The position of a delivery in the list; its row may be gone. */
export interface DeliveryPosition {
  readonly lastAt: number;
  readonly id: string;
}

export interface DeliveryFilter {
  /** Those of the second webhook, which gets copies; otherwise those of the webhook. */
  readonly copies: boolean;
  readonly call: DeliveryTable["call"] | null;
  readonly clientId: number | null;
  readonly name: string | null;
  /** Only those not answered with 200 (publish, update), or 2xx and 410 (publish_done, health, and all copies). */
  readonly failed: boolean;
  /** Epoch ms; only older ones, and only from `from` on. */
  readonly before: number | null;
  readonly from?: number | null;
  /** Only those after this one in the order of the list. */
  readonly behind?: DeliveryPosition | null;
  readonly quantity: number;
}

/** Nothing depends on the answer, so that any success will do. */
const IS_UNSETTLED = sql<boolean>`(status is null or status < 200 or (status >= 300 and status <> 410))`;

/** `rest`: where the list continues that ended early; null when it is complete, or `rows` are as many as requested. */
export async function listDeliveries(
  db: Kysely<Schema>,
  organisationId: string,
  filter: DeliveryFilter,
): Promise<{ readonly rows: readonly Selectable<DeliveryTable>[]; readonly rest: DeliveryPosition | null }> {
  const { copies, call, clientId, name, failed, before, from = null, behind = null, quantity } = filter;
  let near = db.selectFrom("delivery").select(["id", "last_at"]).where("organisation_id", "=", organisationId);
  if (copies) near = near.where("is_copy", "=", 1);
  else if (clientId !== null) near = near.where("client_id", "=", clientId);
  else if (name !== null) near = near.where("name", "=", name);
  else if (failed) near = near.where(sql<boolean>`${sql.raw(FAILED_DELIVERY)}`);
  if (from !== null) near = near.where("last_at", ">=", from);
  if (before !== null) near = near.where("last_at", "<", before);
  if (behind !== null) near = near.where(isBehind("last_at", behind.lastAt, behind.id));
  near = near.orderBy("last_at", "desc").orderBy("id").limit(DELIVERY_WINDOW);
  let query = db.selectFrom(near.as("near")).innerJoin("delivery", "delivery.id", "near.id").selectAll("delivery");
  if (!copies) query = query.where("delivery.is_copy", "is", null);
  if (call !== null) query = query.where("delivery.call", "=", call);
  if (name !== null) query = query.where("delivery.name", "=", name);
  if (clientId !== null) query = query.where("delivery.client_id", "=", clientId);
  if (failed) query = query.where(sql<boolean>`${sql.raw(FAILED_DELIVERY)}`);
  if (failed) query = query.where(copies ? IS_UNSETTLED : sql<boolean>`(call <> 'health' or ${IS_UNSETTLED})`);
  const rows = await query.orderBy("near.last_at", "desc").orderBy("near.id").limit(quantity).execute();
  if (rows.length >= quantity) return { rows, rest: null };
  const last = await lastInWindow(near, DELIVERY_WINDOW);
  return { rows, rest: last === undefined ? null : { lastAt: Number(last.last_at), id: last.id } };
}
