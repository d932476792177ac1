// Bounds guessing of passwords: failures within a window, of a name from one address, of an address, and of a name from
// everywhere. The last is wide: otherwise whoever knows a name could lock its owner out. In memory: a restart forgets.
import { TooManyRequests } from "../errors.ts";

const WINDOW_MS = 900_000;
/** Failures within the window after which they are refused until the window ends. */
const FAILURES_LIMIT = { pair: 10, address: 50, name: 500 } as const;
/** Windows that are remembered; beyond, the one that began first is forgotten. */
const ENTRIES_LIMIT = 15_000;

interface Window {
  readonly endsAt: number;
  failures: number;
}

export interface LoginThrottle {
  /** Counts an attempt. Throws `TooManyRequests` when there were too many: the password is not looked at then. */
  attempt(email: string, address: string): void;
  /** The attempt was right: it and the failures of its name from this address are forgotten. */
  succeeded(email: string, address: string): void;
}

export function createLoginThrottle(clock: { now(): number }): LoginThrottle {
  const windows = new Map<string, Window>();
  return {
    // Counted before the password is checked: attempts at the same time count, too.
    attempt(email, address) {
      const now = clock.now();
      const counted = limitsOf(email, address).map(([key, limit]) => ({ window: windowOf(key, now), limit }));
      for (const { window, limit } of counted) {
        if (window.failures >= limit) throw new TooManyRequests(Math.ceil((window.endsAt - now) / 1_000));
      }
      for (const { window } of counted) window.failures += 1;
    },
    succeeded(email, address) {
      const [[pair], ...others] = limitsOf(email, address);
      windows.delete(pair);
      for (const [key] of others) {
        const window = windows.get(key);
        if (window !== undefined) window.failures -= 1;
      }
    },
  };

  function windowOf(key: string, now: number): Window {
    const known = windows.get(key);
    if (known !== undefined && known.endsAt > now) return known;
    windows.delete(key);
    const [oldest] = windows.keys();
    if (windows.size >= ENTRIES_LIMIT && oldest !== undefined) windows.delete(oldest);
    const window = { endsAt: now + WINDOW_MS, failures: 0 };
    windows.set(key, window);
    return window;
  }
}

/** What an attempt counts for, and how much of it there may be; the pair of both first. */
function limitsOf(email: string, address: string) {
  return [
    [`pair ${address} ${email}`, FAILURES_LIMIT.pair],
    [`address ${address}`, FAILURES_LIMIT.address],
    [`name ${email}`, FAILURES_LIMIT.name],
  ] as const;
}
