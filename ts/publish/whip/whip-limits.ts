// Limits on the use of the WHIP endpoint by one address, and by all together (limits.whip_* in docs/settings.md): token
// buckets for requests, and a count of sessions that are not connected yet. It decides; it sends no responses.

import { RecentMap } from "../../limits/recent-map.ts";
import { networkOf } from "../../network.ts";
import { Bucket } from "../limits/bucket.ts";

/** Buckets kept, two for each address; the least recently active ones are evicted first. */
const ADDRESSES_LIMIT = 10_000;
/** The Retry-After of a refused client, seconds. */
const HALF_OPEN_WAIT_S = 10;
/** Least time between two scans of all half-open sessions, ms. */
const SCAN_PAUSE_MS = 250;

export interface WhipLimitSettings {
  /** Offers of one address per second, and as many requests to sessions: a studio behind one router starts all at once,
   *  and each start trickles its candidates; 0 means no limit. */
  readonly requestsPerSecond: number;
  /** Offers of all addresses per second; 0 means no limit. */
  readonly offersPerSecond: number;
  /** Sessions of one address that are not connected; 0 means no limit. */
  readonly halfOpenPerAddress: number;
  /** The same for all addresses. */
  readonly halfOpen: number;
}

export interface LimitHit {
  /** Whether one address must wait, or everyone. */
  readonly of: "address" | "all";
  /** Seconds. */
  readonly retryAfterS: number;
}

/** A session being set up; `open` once it has a client id. */
export interface HalfOpen {
  opened(clientId: number): void;
  /** It has ended, or was never created. */
  release(): void;
}

export interface WhipLimits {
  /** Null when the request may proceed. */
  request(address: string, kind: "offer" | "session"): LimitHit | null;
  halfOpen(address: string): HalfOpen | LimitHit;
}

export function createWhipLimits(deps: {
  readonly settings: WhipLimitSettings;
  readonly clock: { now(): number };
  /** Whether ICE and DTLS of this publish are complete. */
  readonly isConnected: (clientId: number) => boolean;
}): WhipLimits {
  const { settings, clock } = deps;
  const ofAddress = new RecentMap<string, Bucket>(ADDRESSES_LIMIT);
  const ofAll = new Bucket(settings.offersPerSecond, clock.now());
  const waiting = new Set<Waiting>();
  let scannedAt = Number.NEGATIVE_INFINITY;

  /** Number of sessions of `address`, or of all, that are still not connected. */
  function stillWaiting(address: string | null): number {
    let count = 0;
    for (const each of waiting) {
      if (address !== null && each.address !== address) continue;
      if (each.clientId !== null && deps.isConnected(each.clientId)) waiting.delete(each);
      else count += 1;
    }
    return count;
  }

  function isOverAll(): boolean {
    if (settings.halfOpen === 0 || waiting.size < settings.halfOpen) return false;
    const now = clock.now();
    // A time in the future means that the clock was set back.
    if (now >= scannedAt && now < scannedAt + SCAN_PAUSE_MS) return true;
    scannedAt = now;
    return stillWaiting(null) >= settings.halfOpen;
  }

  return {
    request(address, kind) {
      const key = networkOf(address);
      const now = clock.now();
      if (settings.requestsPerSecond > 0) {
        const bucketKey = `${kind} ${key}`;
        const bucket = ofAddress.get(bucketKey) ?? new Bucket(settings.requestsPerSecond, now);
        // Moved to the end, so that the first entry is the least recently active one.
        ofAddress.set(bucketKey, bucket);
        const wait = bucket.take(now);
        if (wait !== null) return { of: "address", retryAfterS: wait };
      }
      if (kind === "session" || settings.offersPerSecond === 0) return null;
      const wait = ofAll.take(now);
      return wait === null ? null : { of: "all", retryAfterS: wait };
    },
    halfOpen(address) {
      const key = networkOf(address);
      const { halfOpenPerAddress } = settings;
      if (halfOpenPerAddress > 0 && stillWaiting(key) >= halfOpenPerAddress) {
        return { of: "address", retryAfterS: HALF_OPEN_WAIT_S };
      }
      if (isOverAll()) return { of: "all", retryAfterS: HALF_OPEN_WAIT_S };
      const mine: Waiting = { address: key, clientId: null };
      waiting.add(mine);
      return {
        opened(clientId) {
          mine.clientId = clientId;
        },
        release() {
          waiting.delete(mine);
        },
      };
    },
  };
}

interface Waiting {
  readonly address: string;
  clientId: number | null;
}
