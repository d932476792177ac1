// Whether an organisation may do anything at all (M14).
import type { Kysely } from "kysely";
import type { OrganisationTable, Schema } from "./schema.ts";

/** Organisations queried in one statement. */
const AT_A_TIME = 500;

/** False when it is disabled or its trial is over at `now`, epoch ms. */
export function isEnabled(
  organisation: Pick<OrganisationTable, "enabled" | "plan" | "trial_ends_at">,
  now: number,
): boolean {
  if (organisation.enabled === 0) return false;
  const { plan, trial_ends_at: end } = organisation;
  return plan === "paid" || end === null || Number(end) > now;
}

/** Which of these organisations are disabled or past their trial at `now`, epoch ms. */
export async function disabledOf(db: Kysely<Schema>, ids: readonly string[], now: number): Promise<readonly string[]> {
  const disabled: string[] = [];
  for (let at = 0; at < ids.length; at += AT_A_TIME) {
    const rows = await db
      .selectFrom("organisation")
      .select(["id", "enabled", "plan", "trial_ends_at"])
      .where("id", "in", ids.slice(at, at + AT_A_TIME))
      .execute();
    disabled.push(...rows.filter((row) => !isEnabled(row, now)).map(({ id }) => id));
  }
  return disabled;
}
