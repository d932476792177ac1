export function faults(
  times?: number,
): Promise<Record<string, { admitted: number; slowest: number; lagMs: number; stallMs: number; grown: number }>>;
/** Of a decision, ms; how much later it may come; and by how much the heap may grow, MB. */
export const DEADLINE_MS: number;
export const SLACK_MS: number;
export const GROWTH_GOAL_MB: number;
