export interface Goal {
  readonly id: string;
  readonly run: readonly string[];
  rowsOf(found: readonly object[]): string[][];
}
export function goals(blocks: number, peers: readonly string[]): Goal[];
