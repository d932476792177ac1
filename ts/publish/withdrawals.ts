// Ends of publishes that the customer said yes to and that never got media: recorded, however long the store is away.
// A statement whose answer was lost may have been carried out, so what could not be recorded may be there as well.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Schema } from "../store/schema.ts";
import { type RecordedEndReason, recordEnd } from "./record.ts";
import type { Outbox } from "./webhook/outbox.ts";

/** Between two attempts while the store fails, ms. */
const RETRY_MS = 2_000;

export interface Withdrawals {
  /** Ends the publish, if the store has it: then publish_done follows. Resolves after the first attempt; never rejects. */
  withdraw(clientId: number, reason: RecordedEndReason): Promise<void>;
  /** Tries once more what could not be recorded. */
  settled(): Promise<void>;
}

export function createWithdrawals(deps: {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly outbox: Pick<Outbox, "wake">;
}): Withdrawals {
  const { db, clock, log, outbox } = deps;
  const waiting = new Map<number, RecordedEndReason>();
  let timer: NodeJS.Timeout | undefined;

  return {
    async withdraw(clientId, reason) {
      waiting.set(clientId, reason);
      await record(clientId, reason);
    },
    settled: retry,
  };

  async function record(clientId: number, reason: RecordedEndReason): Promise<void> {
    try {
      await recordEnd(db, clientId, { reason, bytes: null }, clock.now());
      waiting.delete(clientId);
      outbox.wake();
    } catch (err) {
      log.error({ err, clientId }, "end of publish could not be recorded yet");
      timer ??= setTimeout(() => void retry(), RETRY_MS).unref();
    }
  }

  async function retry(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    for (const [clientId, reason] of [...waiting]) await record(clientId, reason);
  }
}
