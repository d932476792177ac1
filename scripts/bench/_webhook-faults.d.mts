export function faults(
  times?: number,
): Promise<Record<string, { admitted: number; slowest: number; lagMs: number; grown: number }>>;
