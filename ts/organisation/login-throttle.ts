// Bounds guessing of passwords: failures per name and per address within a window. In memory: a restart forgets.
import { TooManyRequests } from "../errors.ts";

const WINDOW_MS = 900_000;
/** Failures within the window after which a name, or an address, is refused until the window ends. */
const FAILURES_LIMIT = { name: 10, address: 50 } as const;
/** Names and addresses that are remembered; beyond, the one whose window began first is forgotten. */
const ENTRIES_LIMIT = 10_000;

interface Window {
  readonly endsAt: number;
  failures: number;
}

export interface LoginThrottle {
  /** Counts an attempt. Throws `TooManyRequests` when there were too many: the password is not looked at then. */
  attempt(email: string, address: string): void;
  /** The attempt was right: it and the failures of its name are forgotten. */
  succeeded(email: string, address: string): void;
}

export function createLoginThrottle(clock: { now(): number }): LoginThrottle {
  const windows = new Map<string, Window>();
  return {
    // Counted before the password is checked: attempts at the same time count, too.
    attempt(email, address) {
      const now = clock.now();
      const pair = [windowOf(`name ${email}`, now), windowOf(`address ${address}`, now)] as const;
      const [byName, byAddress] = pair;
      const full = byName.failures >= FAILURES_LIMIT.name ? byName : byAddress;
      if (byName.failures >= FAILURES_LIMIT.name || byAddress.failures >= FAILURES_LIMIT.address) {
        throw new TooManyRequests(Math.ceil((full.endsAt - now) / 1_000));
      }
      for (const window of pair) window.failures += 1;
    },
    succeeded(email, address) {
      windows.delete(`name ${email}`);
      const byAddress = windows.get(`address ${address}`);
      if (byAddress !== undefined) byAddress.failures -= 1;
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
