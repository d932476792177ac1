// Records of denials, written in batches after the answer: no broadcaster waits for them, and a customer that denies or
// times out a hundred times costs the store one write. While the store fails they wait. If a record is lost the
// customer's answer counts as unknown, and recovery sends one publish_done too many rather than one too few.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Schema } from "../../store/schema.ts";
import { type Denial, recordDenied } from "../record.ts";

/** How long a denial waits for others to share its write, ms. */
const BATCH_MS = 100;
/** Between two attempts while the store fails, ms. */
const RETRY_MS = 2_000;
/** Denials that wait while the store fails; further ones are lost. */
const WAITING_LIMIT = 10_000;
/** Denials in one statement. */
const AT_A_TIME = 100;

export interface DenialRecords {
  /** Returns immediately. `recorded`: settles when the intent was written, or could not be. */
  add(denial: Denial, recorded: Promise<unknown>): void;
  /** Writes what is waiting; resolves when all denials so far are written, or the store fails. */
  settled(): Promise<void>;
}

export function createDenialRecords(deps: {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}): DenialRecords {
  const { db, clock, log } = deps;
  const underWay = new Set<Promise<void>>();
  let gathered: Denial[] = [];
  let timer: NodeJS.Timeout | undefined;
  let isFailing = false;

  return {
    add(denial, recorded) {
      // An intent whose write failed may still be in the store: perhaps only the reply was lost.
      track(recorded.then(() => gather(denial)));
    },
    async settled() {
      do {
        isFailing = false;
        write();
        await Promise.all(underWay);
      } while ((underWay.size > 0 || gathered.length > 0) && !isFailing);
    },
  };

  function gather(denial: Denial): void {
    gathered.push(denial);
    if (gathered.length >= AT_A_TIME && !isFailing) write();
    else timer ??= setTimeout(write, isFailing ? RETRY_MS : BATCH_MS);
  }

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    if (gathered.length === 0) return;
    const denials = gathered.splice(0, AT_A_TIME);
    track(
      recordDenied(db, denials, clock.now()).then(
        () => {
          isFailing = false;
          if (gathered.length > 0) write();
        },
        (err: unknown) => {
          isFailing = true;
          gathered = [...denials, ...gathered].slice(0, WAITING_LIMIT);
          timer ??= setTimeout(write, RETRY_MS).unref();
          throw err;
        },
      ),
    );
  }

  function track(work: Promise<void>): void {
    const settled: Promise<void> = work
      .catch((err: unknown) => log.error({ err }, "denials could not be recorded"))
      .finally(() => underWay.delete(settled));
    underWay.add(settled);
  }
}
