export function isolation(
  seconds?: number,
  rounds?: number,
): Promise<{ ratio: number; alone: number[]; beside: number[] }>;
