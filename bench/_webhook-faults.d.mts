export function faults(
  times?: number,
): Promise<Record<string, { admitted: number; slowest: number; lagMs: number; stallMs: number; grown: number }>>;
/** Deadline of a decision, ms; its allowed excess; and the limit of the heap's growth, MB. */
export const DEADLINE_MS: number;
export const SLACK_MS: number;
export const GROWTH_GOAL_MB: number;
