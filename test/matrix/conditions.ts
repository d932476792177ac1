// Conditions of a publish in the matrix.
import type { Kind } from "./sources.ts";

export interface Condition {
  readonly name: string;
  readonly media: Kind;
  readonly fate: "accepted" | "denied" | "duplicate";
  /** What follows `?` in the stream name. */
  readonly arguments: string;
  /** How long the customer takes to answer, ms. */
  readonly hookMs: number;
  /** The value that the clock passes about half-way, ms; with 0 it begins at 0. */
  readonly crossingMs: number;
}

/** What begins less than 10 s before 2^31 is below zero, in 31 bits; media that is long enough begins earlier. */
const CLEAR_OF_ZERO_MS = 12_000;
const LEAST_AFTER_MS = 4_000;

/** Where the clock begins with media of `seconds`, ms. */
export function beginningOf({ crossingMs }: Condition, seconds: number): number {
  if (crossingMs === 0) return 0;
  const wholeMs = seconds * 1_000;
  return crossingMs - Math.max(wholeMs / 2, Math.min(wholeMs - LEAST_AFTER_MS, CLEAR_OF_ZERO_MS));
}

const usual = { media: "plain", fate: "accepted", arguments: "passcode=abc", hookMs: 0, crossingMs: 0 } as const;

/** The customer's reason when it refuses. */
export const DENIAL = "Your passcode has expired";

export const conditions: readonly Condition[] = [
  { ...usual, name: "accepted" },
  { ...usual, name: "slow hook", hookMs: 4_000 },
  { ...usual, name: "denied", fate: "denied" },
  { ...usual, name: "duplicate", fate: "duplicate" },
  { ...usual, name: "no audio", media: "no audio" },
  { ...usual, name: "no video", media: "no video" },
  { ...usual, name: "b-frames", media: "b-frames" },
  { ...usual, name: "arguments", arguments: "passcode=s%2Fx&b=%20y&u=a/b&q=c?d" },
  { ...usual, name: "past 2^24 ms", crossingMs: 2 ** 24 },
  { ...usual, name: "past 2^31 ms", crossingMs: 2 ** 31 },
  { ...usual, name: "sps change", media: "sps change" },
];
