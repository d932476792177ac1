// The condition of a running publish in one word: for lists in which a person looks for publishes that need attention.
import type { PublishSnapshot } from "../../media.ts";
import type { Numbers } from "./numbers.ts";

export const CONDITIONS = ["good", "attention", "bad"] as const;
export type Condition = (typeof CONDITIONS)[number];

/** Nothing has come from the broadcaster for this long, ms. */
const SILENT_MS = 5_000;
/** Packet loss that viewers notice occasionally, and continuously, percent. */
const LOSS_SEEN_PERCENT = 1;
const LOSS_BAD_PERCENT = 10;
/** With keyframes this far apart players start slowly, and upstreams with segments of two to six seconds complain,
 *  ms. */
const GOP_LONG_MS = 6_000;
/** People notice audio that is this far from its video (ITU-R BT.1359), ms. */
const SKEW_SEEN_MS = 125;

/** How many of a publish's upstreams receive it, and how many do not. */
export interface UpstreamCounts {
  readonly connected: number;
  readonly failing: number;
}

export function upstreamCounts({ upstreams }: Pick<PublishSnapshot, "upstreams">): UpstreamCounts {
  const connected = upstreams.filter(({ state }) => state === "sending").length;
  const failing = upstreams.filter(({ state }) => state === "waiting" || state === "refused").length;
  return { connected, failing };
}

/** `bad`: viewers get broken media or none; `attention`: they may soon, or some do. */
export function conditionOf(snapshot: PublishSnapshot, numbers: Numbers): Condition {
  const { connected, failing } = upstreamCounts(snapshot);
  const loss = numbers.lossPercent ?? 0;
  if (snapshot.silentMs >= SILENT_MS || loss >= LOSS_BAD_PERCENT || (failing > 0 && connected === 0)) return "bad";
  if (failing > 0 || loss >= LOSS_SEEN_PERCENT || snapshot.transcoderError !== null) return "attention";
  const isOdd = (numbers.gopMs ?? 0) > GOP_LONG_MS || Math.abs(numbers.skewMs ?? 0) > SKEW_SEEN_MS;
  return isOdd ? "attention" : "good";
}
