// Records the ends of publishes: each end is recorded once, kept in memory while the store cannot take it, and its
// event held back until the last update has been answered. A statement whose reply was lost may have been carried out,
// so the end of a publish is recorded even when it is unknown whether the store has its intent.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { Slots } from "../capacity/slots.ts";
import { EVERYTHING, type Share } from "../node-share.ts";
import type { Schema } from "../store/schema.ts";
import type { Ending } from "./ending/ending.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import { orphans, recordOrphanEnds } from "./orphans.ts";
import { type EndedSubject, type FinalCounters, recordEnd, recordEndOf } from "./record.ts";
import type { Outbox } from "./webhook/outbox/outbox.ts";
import { OUTBOXES, type OutboxName } from "./webhook/outbox/waiting.ts";

/** Between two attempts while the store fails, ms. */
const RETRY_MS = 2_000;
/** After this many that failed, the others wait for the next time: it is the store that fails. */
const FAILED_LIMIT = 3;
/** Ends that are recorded at the same time: each takes several statements, and when hundreds of publishes end at once,
 *  other requests must not wait for all of them. */
const RECORDED_AT_ONCE = 2;

export interface Ended {
  readonly clientId: number;
  /** Whose publish it was, if known. */
  readonly organisationId?: string | undefined;
  readonly reason: RecordedEndReason;
  /** Who ended it on purpose; null for nobody. */
  readonly ending: Ending | null;
  /** Null when there was no media. */
  readonly counters: FinalCounters | null;
  /** Epoch of the node that owned the publish. */
  readonly epoch: number;
  /** What is known of the publish; null: the store is asked. */
  readonly subject?: EndedSubject | null;
}

export interface Recording {
  /** Resolves after the first attempt: the store has it, or could not take it yet. */
  readonly tried: Promise<void>;
  /** Resolves when its event may be sent, too. */
  readonly done: Promise<void>;
}

export interface Ends {
  /** Whether an end of the publish is being recorded; the first one counts. */
  has(clientId: number): boolean;
  /** Records the end, immediately or as soon as the store takes it. The event waits for `lastUpdate`. Neither
   *  promise rejects. */
  record(end: Ended, lastUpdate?: Promise<void>): Recording;
  /** Retries once what the store could not take; `name`: only ends of this stream, and of unknown ones. Never rejects. */
  retry(name?: string): Promise<void>;
  /** Ends a share of the publishes that nodes which are gone left open, on behalf of the node with this epoch. A failure
   *  of one batch does not stop the others; rejects after the last of them. */
  recordOrphans(reason: RecordedEndReason, epoch: number, share?: Share): Promise<void>;
}

/** Where the events of ends wait: an end has one in each outbox that it is `written` to. */
export interface EndEvents extends Pick<Outbox, "hold" | "wake"> {
  release(clientId: number, organisation: string | undefined, written: readonly OutboxName[]): void;
}

export function createEnds(deps: {
  readonly db: Kysely<Schema>;
  readonly outbox: EndEvents;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}): Ends {
  const { db, outbox, clock, log } = deps;
  const underWay = new Set<number>();
  const slots = new Slots(RECORDED_AT_ONCE);
  const unrecorded = new Map<number, Ended>();
  let timer: NodeJS.Timeout | undefined;
  let retrying: Promise<void> | null = null;

  /** Resolves with the outboxes that may have its event. */
  async function attempt(end: Ended): Promise<readonly OutboxName[]> {
    const { clientId } = end;
    try {
      const { subject = null, counters } = end;
      const own = { ...end, whose: "own" } as const;
      const written =
        subject === null || counters === null
          ? await recordEnd(db, clientId, own, clock.now())
          : await recordEndOf(db, subject, { ...own, counters }, clock.now());
      if (unrecorded.delete(clientId)) log.info({ clientId }, "end of publish is recorded now");
      return written;
    } catch (err) {
      // One line for each end, however often it is tried.
      if (!unrecorded.has(clientId)) log.error({ err, clientId }, "end of publish could not be recorded yet");
      // Behind the others, so that none keeps them from being tried.
      unrecorded.delete(clientId);
      unrecorded.set(clientId, end);
      retryLater();
      return OUTBOXES;
    }
  }

  function retryLater(): void {
    if (retrying === null) timer ??= setTimeout(() => void retryAll(), RETRY_MS).unref();
  }

  /** One at a time, whoever asks. */
  function retryAll(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    retrying ??= attemptAll([...unrecorded.values()]).finally(() => {
      retrying = null;
      if (unrecorded.size > 0) retryLater();
    });
    return retrying;
  }

  async function attemptAll(ends: readonly Ended[]): Promise<void> {
    let failed = 0;
    for (const end of ends) {
      if (!unrecorded.has(end.clientId)) continue;
      await attempt(end);
      if (unrecorded.has(end.clientId)) failed += 1;
      if (failed === FAILED_LIMIT) break;
    }
    if (ends.length > 0) outbox.wake();
  }

  return {
    has: (clientId) => underWay.has(clientId),
    record(end, lastUpdate = Promise.resolve()) {
      const { clientId } = end;
      outbox.hold(clientId);
      underWay.add(clientId);
      const tried = slots.enter().then((leave) => attempt(end).finally(leave));
      const done = Promise.allSettled([tried, lastUpdate]).then(([written]) => {
        underWay.delete(clientId);
        outbox.release(clientId, end.organisationId, written.status === "fulfilled" ? written.value : OUTBOXES);
      });
      return { tried: tried.then(() => {}), done };
    },
    async retry(name) {
      if (name === undefined) return await retryAll();
      const isOf = ({ subject }: Ended) => subject == null || subject.name === name;
      await attemptAll([...unrecorded.values()].filter(isOf));
    },
    async recordOrphans(reason, epoch, share = EVERYTHING) {
      const errors: unknown[] = [];
      for await (const batch of orphans(db, share)) {
        try {
          await recordOrphanEnds(db, batch, { reason, epoch }, clock.now());
          for (const { about } of batch) log.warn({ ...about, reason }, "publish ended");
          outbox.wake();
        } catch (err) {
          errors.push(err);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
}
