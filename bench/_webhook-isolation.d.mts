export function isolation(
  seconds?: number,
  rounds?: number,
  load?: { ofA?: number; ofB?: number; secondsOfA?: number; aheadMs?: number },
): Promise<{ ratio: number; alone: number[]; beside: number[] }>;
