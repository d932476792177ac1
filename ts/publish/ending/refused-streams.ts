// Whether a stream takes publishes at present: not while it is locked, and not for a while after an end that asked for
// that, because encoders reconnect by themselves. The store decides, so it holds on every node.
import type { StreamTable } from "../../store/schema.ts";
import { type Denied, denied } from "../denials.ts";

/** Longest text for a broadcaster, characters. */
const TEXT_LIMIT = 200;

/** A refusal that seems to last longer was begun by a clock that was ahead, and is over: none is for more than an hour, and
 *  the clocks of nodes differ by less, ms. */
export const REFUSAL_LIMIT_MS = 2 * 3_600_000;

/** The columns of a stream that decide. */
export type RefusedStream = Pick<StreamTable, "state" | "refused_until" | "refused_reason">;

/** Until when publishes are refused after an end, epoch ms; null: they are not. */
export function refusedUntil({ refused_until: until }: Pick<StreamTable, "refused_until">, now: number): number | null {
  const left = Number(until ?? now) - now;
  return left <= 0 || left > REFUSAL_LIMIT_MS ? null : Number(until);
}

export function refusalOfStream(stream: RefusedStream, now: number): Denied | null {
  if (stream.state === "locked") return denied("locked_stream");
  const until = refusedUntil(stream, now);
  if (until === null) return null;
  const retryAfterS = Math.ceil((until - now) / 1_000);
  const remaining = ` (refused for another ${retryAfterS} s)`;
  const reason = (stream.refused_reason ?? "Publish was ended by the operator").slice(0, TEXT_LIMIT - remaining.length);
  return { ...denied("refused_after_end", reason + remaining), retryAfterS };
}
