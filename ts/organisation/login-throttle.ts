// Limits password guessing: failures within a window, of a name from one network, of a network, and of a name from
// everywhere. The last limit is generous: otherwise anyone who knows a name could lock its owner out. In memory: lost
// at a restart.
import { createHash } from "node:crypto";
import { TooManyRequests } from "../errors.ts";
import { steadyClock } from "../in-time.ts";
import { networkOf } from "../network.ts";

const WINDOW_MS = 900_000;
/** After this many failures further attempts are refused until the window ends. */
const FAILURES_LIMIT = { pair: 10, network: 50, name: 500 } as const;
/** Windows of each kind kept in memory. */
const ENTRIES_LIMIT = 10_000;
/** Beyond that, among this many of the oldest the one with the fewest failures is evicted: made-up names cannot push
 *  out those that are being guessed at. */
const OLDEST = 64;

interface Window {
  readonly endsAt: number;
  failures: number;
}
type Kind = keyof typeof FAILURES_LIMIT;

export interface LoginThrottle {
  /** Counts an attempt. Throws `TooManyRequests` when there were too many, without checking the password. */
  attempt(email: string, address: string): void;
  /** The password could not be checked: the attempt does not count. */
  unchecked(email: string, address: string): void;
  /** The attempt succeeded: it and the failures of its name from this network are forgotten. */
  succeeded(email: string, address: string): void;
}

export function createLoginThrottle(wall: { now(): number }): LoginThrottle {
  const clock = steadyClock(wall);
  const windows: Readonly<Record<Kind, Map<string, Window>>> = { pair: new Map(), network: new Map(), name: new Map() };
  return {
    // Counted before the password is checked, so that concurrent attempts count, too.
    attempt(email, address) {
      const now = clock.now();
      const keys = keysOf(email, address);
      // A refused attempt leaves nothing in memory.
      for (const [kind, key] of keys) {
        const window = windows[kind].get(key);
        if (window === undefined || window.endsAt <= now || window.failures < FAILURES_LIMIT[kind]) continue;
        throw new TooManyRequests(Math.ceil((window.endsAt - now) / 1_000));
      }
      for (const [kind, key] of keys) windowOf(kind, key, now).failures += 1;
    },
    unchecked(email, address) {
      for (const [kind, key] of keysOf(email, address)) {
        const window = windows[kind].get(key);
        if (window !== undefined && window.failures > 0) window.failures -= 1;
      }
    },
    succeeded(email, address) {
      for (const [kind, key] of keysOf(email, address)) {
        const window = windows[kind].get(key);
        if (kind === "pair") windows.pair.delete(key);
        else if (window !== undefined) window.failures -= 1;
      }
    },
  };

  function windowOf(kind: Kind, key: string, now: number): Window {
    const ofKind = windows[kind];
    const known = ofKind.get(key);
    if (known !== undefined && known.endsAt > now) return known;
    ofKind.delete(key);
    if (ofKind.size >= ENTRIES_LIMIT) forgetOne(ofKind, now);
    const window = { endsAt: now + WINDOW_MS, failures: 0 };
    ofKind.set(key, window);
    return window;
  }
}

function forgetOne(windows: Map<string, Window>, now: number): void {
  let least: readonly [key: string, failures: number] | null = null;
  let seen = 0;
  for (const [key, { endsAt, failures }] of windows) {
    const counting = endsAt > now ? failures : 0;
    if (least === null || counting < least[1]) least = [key, counting];
    seen += 1;
    if (seen === OLDEST) break;
  }
  if (least !== null) windows.delete(least[0]);
}

/** The counters to which an attempt is added. Names are hashed: given ones may be long. */
function keysOf(email: string, address: string): readonly (readonly [Kind, string])[] {
  const network = networkOf(address);
  const name = createHash("sha256").update(email).digest("base64url");
  return [
    ["pair", `${network} ${name}`],
    ["network", network],
    ["name", name],
  ];
}
