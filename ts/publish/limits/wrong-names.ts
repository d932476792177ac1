// Slows whoever guesses stream names, of publishes and of plays: a name is all that some of them need. Counted are
// different names that do not exist, by address and by /64: an encoder that repeats one wrong name is not slowed, and a
// slowed address goes on with the names it has used before. In memory of one node, bounded.

import { createHash } from "node:crypto";
import { RecentMap } from "../../limits/recent-map.ts";
import { networkOf } from "../../network.ts";

/** This many different wrong names within the window; further names are refused until one of them leaves it. */
const NAMES_LIMIT = 20;
const WINDOW_MS = 60_000;
/** Names of a network that the store is asked for at the same time: a studio starts its encoders all at once. */
const ASKED_LIMIT = 100;
/** Names that exist and were last used from a network: those that may go on. */
const USED_LIMIT = 64;
/** Networks in memory; the one that was quiet for longest is evicted first. */
const NETWORKS_LIMIT = 20_000;

/** Names by hash, with the time of the last request for each, ms; the oldest first. */
type Times = Map<string, number>;

interface Network {
  readonly wrong: Times;
  /** Neither right nor wrong yet. */
  readonly asked: Times;
  /** The one last used last. */
  readonly used: RecentMap<string, true>;
}

export interface WrongNames {
  /** To be called before the store is asked for a name: null, or in how many seconds this address may try another. */
  waitS(address: string, name: string): number | null;
  /** No stream has this name. */
  wrong(address: string, name: string): void;
  /** A stream has this name. */
  right(address: string, name: string): void;
}

/** `clock`: a steady one, ms. `networksLimit`: for tests. */
export function createWrongNames(clock: { now(): number }, networksLimit = NETWORKS_LIMIT): WrongNames {
  const networks = new RecentMap<string, Network>(networksLimit);

  function networkFor(address: string): Network {
    const key = networkOf(address);
    const network = networks.get(key) ?? { wrong: new Map(), asked: new Map(), used: new RecentMap(USED_LIMIT) };
    networks.set(key, network);
    return network;
  }

  return {
    waitS(address, name) {
      const { wrong, asked, used } = networkFor(address);
      const hash = hashOf(name);
      const now = clock.now();
      forgetOld(wrong, now);
      forgetOld(asked, now);
      const [oldest = now] = wrong.size >= NAMES_LIMIT ? wrong.values() : asked.values();
      const isFull = wrong.size >= NAMES_LIMIT || asked.size >= ASKED_LIMIT;
      if (isFull && !wrong.has(hash) && !used.has(hash)) return Math.ceil((oldest + WINDOW_MS - now) / 1_000);
      note(asked, hash, now);
      return null;
    },
    wrong(address, name) {
      const { wrong, asked } = networkFor(address);
      const hash = hashOf(name);
      asked.delete(hash);
      // No more than could be asked for at once: all of them delay the next one.
      note(wrong, hash, clock.now());
    },
    right(address, name) {
      const { wrong, asked, used } = networkFor(address);
      const hash = hashOf(name);
      wrong.delete(hash);
      asked.delete(hash);
      used.set(hash, true);
    },
  };
}

function note(times: Times, hash: string, now: number): void {
  times.delete(hash);
  times.set(hash, now);
}

function forgetOld(times: Times, now: number): void {
  for (const [hash, at] of times) {
    if (at + WINDOW_MS > now) return;
    times.delete(hash);
  }
}

/** What is kept of a name or a key that was tried: they are secrets, and may be long. */
export const hashOf = (tried: string) => createHash("sha256").update(tried).digest("base64url").slice(0, 16);
