// Writes the outcomes of deliveries: all that come while a write runs are in the next one, so that a crowd of deliveries
// costs few transactions, and publishes wait behind one at most.
import type { CompiledQuery, Kysely } from "kysely";
import type { Membership } from "../../../cluster/membership.ts";
import type { Schema } from "../../../store/schema.ts";
import { together } from "../../../store/statements/together.ts";
import type { OutboxName } from "./waiting.ts";

/** Outcomes in one write. */
const PORTION = 50;

/** What an outcome changes in the event's row. */
export interface Settlement {
  readonly id: string;
  readonly change: {
    readonly last_status: number | null;
    readonly refusals: number;
    readonly refused_since: number | null;
    /** Only where the attempt that was counted in advance was not made. */
    readonly attempts?: number;
    readonly delivered_at?: number;
    readonly given_up_at?: number;
    readonly next_attempt_at?: number;
  };
}

interface Pending extends Settlement {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Returns what writes one; it resolves when the store has it. */
export function createSettlements(db: Kysely<Schema>, table: OutboxName, member: Pick<Membership, "epoch">) {
  const pending: Pending[] = [];
  let isWriting = false;

  async function write(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (pending.length > 0) {
      const portion = pending.splice(0, PORTION);
      try {
        await together(db, statements(portion));
        for (const { resolve } of portion) resolve();
      } catch (error) {
        for (const { reject } of portion) reject(error);
      }
    }
    isWriting = false;
  }

  /** Those with the same outcome, which most have, in one statement: then they are delivered at the time of the latest. */
  function statements(portion: readonly Settlement[]): CompiledQuery[] {
    const latest = Math.max(...portion.map(({ change }) => change.delivered_at ?? 0));
    const alike = new Map<string, { readonly change: Settlement["change"]; readonly ids: string[] }>();
    for (const { id, change: own } of portion) {
      const change = own.delivered_at === undefined ? own : { ...own, delivered_at: latest };
      const key = JSON.stringify(change);
      const known = alike.get(key) ?? { change, ids: [] };
      known.ids.push(id);
      alike.set(key, known);
    }
    return [...alike.values()].map(({ change, ids }) =>
      db.updateTable(table).set(change).where("id", "in", ids).where("epoch", "=", member.epoch).compile(),
    );
  }

  return (settlement: Settlement): Promise<void> =>
    new Promise((resolve, reject) => {
      pending.push({ ...settlement, resolve, reject });
      void write();
    });
}
