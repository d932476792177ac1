// Ends of publishes on their way into the store: each is recorded once, kept while the store cannot take it, and its event
// held back until the last update has been answered.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { PublishEnded } from "../media/events.ts";
import type { Schema } from "../store/schema.ts";
import { type RecordedEndReason, recordEnd } from "./record.ts";
import type { Outbox } from "./webhook/outbox.ts";

/** An end as it is recorded. */
export type Ended = Omit<PublishEnded, "kind" | "reason"> & {
  readonly reason: RecordedEndReason;
  /** Of the node whose publish it was. */
  readonly epoch: number;
};

export interface Ends {
  /** Whether the end is being recorded: what was said of it first holds. */
  has(clientId: number): boolean;
  /** Records it, or keeps it for `retry`. The event waits for `lastUpdate`. Never rejects. */
  record(end: Ended, lastUpdate?: Promise<void>): Promise<void>;
  /** Tries again what the store could not take. */
  retry(): Promise<void>;
}

export function createEnds(deps: {
  readonly db: Kysely<Schema>;
  readonly outbox: Pick<Outbox, "hold" | "release" | "wake">;
  readonly clock: { now(): number };
  readonly log: Logger;
}): Ends {
  const { db, outbox, clock, log } = deps;
  const underWay = new Set<number>();
  const unrecorded = new Map<number, Ended>();

  async function attempt(end: Ended): Promise<void> {
    const { clientId, reason, epoch } = end;
    try {
      await recordEnd(db, clientId, { reason, bytes: end, epoch, whose: "own" }, clock.now());
      unrecorded.delete(clientId);
    } catch (err) {
      unrecorded.set(clientId, end);
      log.error({ err, clientId }, "end of publish could not be recorded yet");
    }
  }

  return {
    has: (clientId) => underWay.has(clientId),
    async record(end, lastUpdate = Promise.resolve()) {
      const { clientId } = end;
      outbox.hold(clientId);
      underWay.add(clientId);
      try {
        await Promise.all([attempt(end), lastUpdate]);
      } finally {
        underWay.delete(clientId);
        outbox.release(clientId);
      }
    },
    async retry() {
      if (unrecorded.size === 0) return;
      for (const end of [...unrecorded.values()]) await attempt(end);
      outbox.wake();
    },
  };
}
