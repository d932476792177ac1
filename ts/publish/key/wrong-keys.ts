// Slows whoever guesses publish keys, by address and by /64, like those who guess names. The first wrong key of a stream
// is an encoder's mistake, repeated or not: a studio with fifty outdated keys is not slowed. In memory of one node,
// bounded.

import { RecentMap } from "../../limits/recent-map.ts";
import { networkOf } from "../../network.ts";
import { createWrongNames, hashOf } from "../limits/wrong-names.ts";

/** Mistakes in memory; the one that was made first is evicted first. */
const MISTAKES_LIMIT = 20_000;

export interface WrongKeys {
  /** To be called before a key is compared: null, or in how many seconds this address may try another one. */
  waitS(address: string, streamId: string, key: string): number | null;
  wrong(address: string, streamId: string, key: string): void;
  right(address: string, streamId: string, key: string): void;
}

/** `clock`: a steady one, ms. */
export function createWrongKeys(clock: { now(): number }, mistakesLimit = MISTAKES_LIMIT): WrongKeys {
  const guesses = createWrongNames(clock);
  /** The hash of the first wrong key, by network and stream. */
  const mistakes = new RecentMap<string, string>(mistakesLimit);

  return {
    waitS(address, streamId, key) {
      const mistake = mistakes.get(sourceOf(address, streamId)) ?? null;
      return mistake === null || mistake === hashOf(key) ? null : guesses.waitS(address, guessOf(streamId, key));
    },
    wrong(address, streamId, key) {
      const source = sourceOf(address, streamId);
      const mistake = mistakes.get(source) ?? null;
      if (mistake === null) mistakes.set(source, hashOf(key));
      else if (mistake !== hashOf(key)) guesses.wrong(address, guessOf(streamId, key));
    },
    right(address, streamId, key) {
      mistakes.delete(sourceOf(address, streamId));
      guesses.right(address, guessOf(streamId, key));
    },
  };
}

const sourceOf = (address: string, streamId: string) => `${networkOf(address)} ${streamId}`;

const guessOf = (streamId: string, key: string) => `${streamId} ${key}`;
