// The bitrate that a sender is asked to stay below, kbit/s: the lowest of several limits. Applies only to protocols
// that can ask a sender to; RTMP cannot.

import type { RunningPublish } from "./publishes.ts";

/** By plan; 0 means no limit. */
export interface BitrateLimits {
  readonly all: number;
  /** For organisations on trial, in addition to `all`. */
  readonly trial: number;
}

/** The lowest limit of the deployment, the plan and the organisation; 0 means no limit. */
export function bitrateLimitOf(limits: BitrateLimits, plan: "trial" | "paid", ofOrganisation: number): number {
  return lowestLimit(limits.all, plan === "trial" ? limits.trial : 0, ofOrganisation);
}

/** The limit of a running publish; 0 for none, and for RTMP. */
export function limitOf({
  protocol,
  maxBitrateKbps,
  ownLimitKbps,
}: Pick<RunningPublish, "protocol" | "maxBitrateKbps" | "ownLimitKbps">): number {
  return protocol === "rtmp" ? 0 : lowestLimit(maxBitrateKbps, ownLimitKbps);
}

/** The lowest of the limits, where 0 means none; 0 when there is none at all. */
export function lowestLimit(...limits: readonly number[]): number {
  const given = limits.filter((limit) => limit > 0);
  return given.length === 0 ? 0 : Math.min(...given);
}
