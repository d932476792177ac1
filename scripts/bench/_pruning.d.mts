export function pruning(options: {
  rows: number;
  seconds?: number;
  rounds?: number;
  databaseUrl?: string | null;
}): Promise<
  { kind: string; ratio: number; rows: number; slowest: number; statements: number; alone: number[]; beside: number[] }[]
>;
