export function kills(
  count?: number,
): Promise<{ publishes: number; done: number; wrong: string[]; settingsLost: number; readyMs: number[] }>;
