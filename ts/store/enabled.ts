// Whether an organisation may do anything at all (M14).
import type { OrganisationTable } from "./schema.ts";

/** False when it is disabled or its trial is over at `now`, epoch ms. */
export function isEnabled(
  organisation: Pick<OrganisationTable, "enabled" | "plan" | "trial_ends_at">,
  now: number,
): boolean {
  if (organisation.enabled === 0) return false;
  const { plan, trial_ends_at: end } = organisation;
  return plan === "paid" || end === null || Number(end) > now;
}
