export function tenants(
  seconds?: number,
  rounds?: number,
  organisations?: number,
  hanging?: number,
  apart?: boolean,
): Promise<{ wrong: number; alone: number[]; healthy: number[]; hanging: number[] }>;
