// The audit log (M15): every change with its author, recorded in the same transaction as the change.
import { randomInt } from "node:crypto";
import { type Kysely, sql } from "kysely";
import type { AuditTable, Schema } from "../store/schema.ts";
import { lastInWindow } from "../store/statements/window.ts";

/** The author of a change, and the request that made it. */
export interface Actor {
  readonly organisation: { readonly id: string };
  readonly who: { readonly kind: AuditTable["who_kind"]; readonly id: string | null };
  /** null outside of a request. */
  readonly requestId: string | null;
}

/** The description of a change. `detail` never contains a secret. */
export interface Change {
  readonly action: string;
  /** Id of the changed object. */
  readonly subject: string;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Longest value in the details of an entry, characters of JSON. */
const VALUE_LIMIT = 2_000;
/** Entries that a request with a filter looks at. */
export const AUDIT_WINDOW = 5_000;
/** How many entries one list returns: by default, and at most. */
export const AUDIT_QUANTITY = { standard: 50, most: 500 } as const;

/** Runs `work` and records the change it returns, in one transaction. */
export async function changed<T>(
  db: Kysely<Schema>,
  actor: Actor,
  now: number,
  change: Change | ((result: T) => Change),
  work: (trx: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (trx) => {
    const result = await work(trx);
    await recordChange(trx, actor, now, typeof change === "function" ? change(result) : change);
    return result;
  });
}

/** Records a change that affects no table. */
export async function recordChange(db: Kysely<Schema>, actor: Actor, now: number, change: Change): Promise<void> {
  await db
    .insertInto("audit")
    .values({
      id: nextId(now),
      organisation_id: actor.organisation.id,
      at: now,
      who_kind: actor.who.kind,
      who_id: actor.who.id,
      action: change.action,
      subject: change.subject,
      detail: JSON.stringify(shortened(change.detail ?? {})),
      request_id: actor.requestId,
    })
    .execute();
}

/** Entries of an organisation, newest first. `before`: only those older than the entry with this id; `action`: only
 *  this action, or those that begin with it and a dot; `who`: only changes by this person or key. With one of these one
 *  request looks at a bounded number of entries: `rest` is the last of them when the list continues behind it. */
export async function listAudit(
  db: Kysely<Schema>,
  organisationId: string,
  page: {
    readonly quantity: number;
    readonly before: string | null;
    readonly action?: string | null;
    readonly who?: string | null;
    /** Epoch ms: only entries from this time on, and before that one. */
    readonly from?: number | null;
    readonly to?: number | null;
  },
): Promise<{ readonly entries: readonly AuditTable[]; readonly rest: string | null }> {
  const { before, action = null, who = null, from = null, to = null, quantity } = page;
  const isFiltered = action !== null || who !== null;
  let near = db.selectFrom("audit").selectAll().where("organisation_id", "=", organisationId);
  if (before !== null) near = near.where("id", "<", before);
  // Ids ascend with time.
  if (from !== null) near = near.where("id", ">=", digits(from, 14));
  if (to !== null) near = near.where("id", "<", digits(to, 14));
  near = near.orderBy("id", "desc").limit(isFiltered ? AUDIT_WINDOW : quantity);
  let query = db.selectFrom(near.as("near")).selectAll();
  if (who !== null) query = query.where("who_id", "=", who);
  if (action !== null) {
    // Not a LIKE pattern: the text may contain wildcard characters.
    const beginning = `${action}.`;
    const begins = sql<boolean>`substr(action, 1, ${[...beginning].length}) = ${beginning}`;
    query = query.where((eb) => eb.or([eb("action", "=", action), begins]));
  }
  const entries = await query.orderBy("id", "desc").limit(quantity).execute();
  if (!isFiltered || entries.length >= quantity) return { entries, rest: null };
  const last = await lastInWindow(near.clearSelect().select("id"), AUDIT_WINDOW);
  return { entries, rest: last?.id ?? null };
}

/** Entries are kept for more than a year: a long value is kept as its length. */
function shortened(detail: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => {
      const { length } = JSON.stringify(value) ?? "";
      return [name, length <= VALUE_LIMIT ? value : `${length} characters`];
    }),
  );
}

const digits = (value: number, length: number) => String(Math.max(0, value)).padStart(length, "0");

let counter = 0;

/** Ids ascend with time, within one process even in the same millisecond; random digits keep processes apart. */
function nextId(now: number): string {
  counter = (counter + 1) % 1_000_000;
  return `${digits(now, 14)}${digits(counter, 6)}${digits(randomInt(1_000_000), 6)}`;
}
