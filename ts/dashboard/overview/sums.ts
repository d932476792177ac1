// What the overview counts: refusals by reason, the latency of webhook calls, publishes that need attention. Pure.
import type { Records } from "../../client/index.ts";
import type { LiveRow } from "../streams/records.ts";

type Refusal = Pick<Records["Refusal"], "reason" | "count">;

/** Reasons with how often each occurred, the most frequent first. */
export function byReason(
  refusals: readonly Refusal[],
): readonly { readonly reason: Refusal["reason"]; readonly count: number }[] {
  const counts = new Map<Refusal["reason"], number>();
  for (const { reason, count } of refusals) counts.set(reason, (counts.get(reason) ?? 0) + count);
  return [...counts].map(([reason, count]) => ({ reason, count })).sort((one, other) => other.count - one.count);
}

/** Of calls with an answer; null when there is none. */
export function latencyOf(
  calls: readonly Pick<Records["Delivery"], "outcome" | "latency_ms">[],
): { readonly median: number; readonly slowest: number } | null {
  const sorted = calls
    .filter(({ outcome }) => outcome === "answered")
    .map(({ latency_ms }) => latency_ms)
    .sort((one, other) => one - other);
  const [median, slowest] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return median === undefined || slowest === undefined ? null : { median, slowest };
}

/** Publishes with a problem, the bad ones first, then the oldest first. */
export function needAttention(rows: readonly LiveRow[]): readonly LiveRow[] {
  const found = rows.filter(({ condition }) => condition !== "good");
  const rank = ({ condition }: LiveRow) => (condition === "bad" ? 0 : 1);
  return [...found].sort((one, other) => rank(one) - rank(other) || one.client_id - other.client_id);
}

export interface UpstreamSum {
  readonly connected: number;
  readonly down: number;
  /** Streams with an upstream that is down. */
  readonly rows: readonly LiveRow[];
}

export function upstreamsOf(rows: readonly LiveRow[]): UpstreamSum {
  const sum = (of: (row: LiveRow) => number) => rows.reduce((total, row) => total + of(row), 0);
  return {
    connected: sum(({ upstreams }) => upstreams.connected),
    down: sum(({ upstreams }) => upstreams.failing),
    rows: rows.filter(({ upstreams }) => upstreams.failing > 0),
  };
}
