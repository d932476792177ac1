// R8: customers' endpoints that fail in many ways.
import { faults as callFaulty, DEADLINE_MS, SLACK_MS } from "../_webhook-faults.mjs";
import { faultsWhere } from "./_service.mjs";

export const title = "endpoints that hang, reset, answer with a wrong status, or send too much";

const TIMES = 200;

export async function endure(share) {
  const times = Math.max(20, Math.round(TIMES * share));
  const found = await callFaulty(times);
  const faults = Object.entries(found).flatMap(([kind, { admitted, slowest }]) =>
    faultsWhere({
      [`${kind}: ${admitted} of ${times} admitted`]: admitted !== (kind === "ok" ? times : 0),
      [`${kind}: decided after ${slowest} ms`]: slowest > DEADLINE_MS + SLACK_MS,
    }),
  );
  const round = ({ admitted, slowest, lagMs, grown }) => ({
    ...{ admitted, slowestMs: Math.round(slowest) },
    ...{ lagP99Ms: Number(lagMs.toFixed(1)), grownMb: Number(grown.toFixed(1)) },
  });
  return { figures: Object.fromEntries(Object.entries(found).map(([kind, one]) => [kind, round(one)])), faults };
}
