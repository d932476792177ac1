// Each organisation's share of the store for reads: requests at once, and time of statements per second. Whoever asks
// for more waits, first come, first served, and is refused when that takes too long; other organisations are not
// affected. The rate of requests is limited elsewhere (request-rate.ts).
import { TooManyReads } from "../../errors.ts";
import { type Account, chargedTo } from "../../store/statements/reading.ts";

/** Requests of an organisation that read at the same time: fewer than the store has connections for reads. */
export const READS_AT_ONCE = 3;
/** Requests that wait. */
export const READS_WAITING = 40;
/** How long a request waits, ms. */
export const READ_WAIT_MS = 2_000;
/** Time of statements: each second's share, and what may be saved up, ms. */
export const READ_SHARE_MS = 400;
export const READ_BURST_MS = 2_000;
/** With more organisations than this, those that have saved up everything are removed: they equal new ones. */
const SWEEP_AT = 10_000;

export interface ReadLimits {
  /** Runs `act` when it is the organisation's turn. Rejects with `TooManyReads` when that takes longer than `waitMs`, or
   *  too many wait. */
  run<T>(organisationId: string, act: () => Promise<T>, waitMs?: number): Promise<T>;
}

interface Waiting {
  start(): void;
}

interface Share extends Account {
  running: number;
  /** Saved up at the time `at`; negative after expensive statements. */
  balanceMs: number;
  at: number;
  readonly waiting: Waiting[];
  /** Set while requests wait for the balance alone. */
  timer: NodeJS.Timeout | null;
}

/** `steady`: a clock that is never set, ms. */
export function createReadLimits(steady: { now(): number }): ReadLimits {
  const shares = new Map<string, Share>();

  return {
    async run(organisationId, act, waitMs = READ_WAIT_MS) {
      const share = shareOf(organisationId);
      if (share.waiting.length > 0 || !mayStart(share)) await turn(share, waitMs);
      else share.running += 1;
      try {
        return await chargedTo(share, act);
      } finally {
        share.running -= 1;
        wake(share);
      }
    },
  };

  function shareOf(organisationId: string): Share {
    const known = shares.get(organisationId);
    if (known !== undefined) return known;
    if (shares.size >= SWEEP_AT) {
      for (const [id, share] of shares) if (isIdle(share)) shares.delete(id);
    }
    const share: Share = {
      running: 0,
      balanceMs: READ_BURST_MS,
      at: steady.now(),
      waiting: [],
      timer: null,
      charge(ms) {
        share.balanceMs -= ms;
      },
    };
    shares.set(organisationId, share);
    return share;
  }

  function isIdle(share: Share): boolean {
    refill(share);
    return share.running === 0 && share.waiting.length === 0 && share.balanceMs >= READ_BURST_MS;
  }

  function refill(share: Share): void {
    const now = steady.now();
    share.balanceMs = Math.min(READ_BURST_MS, share.balanceMs + ((now - share.at) * READ_SHARE_MS) / 1000);
    share.at = now;
  }

  function mayStart(share: Share): boolean {
    refill(share);
    return share.running < READS_AT_ONCE && share.balanceMs > 0;
  }

  /** Resolves when the request may start. */
  function turn(share: Share, waitMs: number): Promise<void> {
    if (share.waiting.length >= READS_WAITING) throw refusal(share);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start() {
          share.running += 1;
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        share.waiting.splice(share.waiting.indexOf(waiting), 1);
        reject(refusal(share));
      }, waitMs);
      share.waiting.push(waiting);
      wake(share);
    });
  }

  /** Starts the requests whose turn it is. */
  function wake(share: Share): void {
    while (share.waiting.length > 0 && mayStart(share)) share.waiting.shift()?.start();
    if (share.waiting.length === 0 || share.running > 0 || share.timer !== null) return;
    share.timer = setTimeout(() => {
      share.timer = null;
      wake(share);
    }, dueMs(share));
  }

  /** Until the balance is positive. */
  function dueMs(share: Share): number {
    return Math.max(1, Math.ceil(((1 - share.balanceMs) * 1000) / READ_SHARE_MS));
  }

  function refusal(share: Share): TooManyReads {
    refill(share);
    return new TooManyReads(Math.max(1, Math.ceil(dueMs(share) / 1000)));
  }
}
