export function durability(
  count?: number,
): Promise<{ accepted: number; done: number; repeated: number; wrong: string[]; failures: number }>;
