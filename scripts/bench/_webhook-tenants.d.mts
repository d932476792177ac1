export function tenants(
  seconds?: number,
  rounds?: number,
  organisations?: number,
  hanging?: number,
): Promise<{ ratio: number; alone: number[]; healthy: number[]; hanging: number[] }>;
