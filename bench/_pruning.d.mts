export function pruning(options: {
  rows: number;
  seconds?: number;
  rounds?: number;
  databaseUrl?: string | null;
}): Promise<{
  kinds: { kind: string; rows: number; slowest: number; statements: number; alone: number[]; beside: number[] }[];
  denied: number;
}>;
