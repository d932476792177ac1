// The second webhook of an organisation: it gets copies of the calls to the first one, and alerts, and decides nothing.
import type { Kysely } from "kysely";
import type { Schema } from "../../store/schema.ts";
import type { WebhookCopyTable } from "../../store/tables/webhook-tables.ts";

export const COPIED_EVENTS = ["all", "alerts"] as const satisfies readonly WebhookCopyTable["events"][];
export type CopiedEvents = WebhookCopyTable["events"];

/** Where copies go. */
export interface CopyAddress {
  readonly url: string;
  readonly events: CopiedEvents;
}

/** null: there is none. */
export async function readCopyAddress(db: Kysely<Schema>, organisationId: string): Promise<CopyAddress | null> {
  const row = await db
    .selectFrom("webhook_copy")
    .select(["url", "events"])
    .where("organisation_id", "=", organisationId)
    .executeTakeFirst();
  return row ?? null;
}

/** Sets or removes (null) it, in the caller's transaction. */
export async function setCopyAddress(
  trx: Kysely<Schema>,
  organisationId: string,
  address: CopyAddress | null,
  now: number,
): Promise<void> {
  if (address === null) {
    await trx.deleteFrom("webhook_copy").where("organisation_id", "=", organisationId).execute();
    return;
  }
  const row = { url: address.url, events: address.events, updated_at: now };
  await trx
    .insertInto("webhook_copy")
    .values({ organisation_id: organisationId, ...row })
    .onConflict((conflict) => conflict.column("organisation_id").doUpdateSet(row))
    .execute();
}
