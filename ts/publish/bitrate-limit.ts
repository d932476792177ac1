// What a sender that can be told is told to stay below, kbit/s: of several limits the lowest. RTMP has no word for it.

/** By plan; 0 is no limit. */
export interface BitrateLimits {
  readonly all: number;
  /** Of organisations on trial, beside `all`. */
  readonly trial: number;
}

/** What the deployment, the plan and the organisation say together; 0 is no limit. */
export function bitrateLimitOf(limits: BitrateLimits, plan: "trial" | "paid", ofOrganisation: number): number {
  return lowestLimit(limits.all, plan === "trial" ? limits.trial : 0, ofOrganisation);
}

/** The lowest of limits where 0 is none; 0 when there is none at all. */
export function lowestLimit(...limits: readonly number[]): number {
  const given = limits.filter((limit) => limit > 0);
  return given.length === 0 ? 0 : Math.min(...given);
}
