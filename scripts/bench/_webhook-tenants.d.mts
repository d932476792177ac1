export function tenants(
  seconds?: number,
  rounds?: number,
  organisations?: number,
  hanging?: number,
): Promise<{ wrong: number; alone: number[]; healthy: number[]; hanging: number[] }>;
