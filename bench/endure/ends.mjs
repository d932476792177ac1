// R9: ends of publishes during failures and restarts of both sides.
import { durability } from "../_webhook-durability.mjs";
import { faultsWhere } from "./_service.mjs";

export const title = "10,000 ends of publishes while a third of the answers fail and both sides restart";

const ENDS = 10_000;

export async function endure(share) {
  const { accepted, done, wrong, failures } = await durability(Math.max(200, Math.round(ENDS * share)));
  const faults = faultsWhere({ [wrong[0]]: wrong.length > 0, "ends were lost": done < accepted });
  return { figures: { accepted, done, failures, wrong: wrong.length }, faults };
}
