export interface Cost {
  readonly statements: number;
  readonly rows: number;
  readonly walBytes: number;
  readonly ms: number;
}
export interface Measured {
  readonly nodes: number;
  readonly nodeRowBytes: number;
  readonly costs: { readonly node: Cost; readonly start: Cost; readonly second: Cost; readonly end: Cost };
}
export function measureNodes(options: {
  nodes: number;
  publishes: number;
  seconds: number;
  updateS?: number;
}): Promise<Measured & { readonly busiest: readonly { readonly text: string; readonly calls: number }[] }>;
export function extrapolate(
  measured: Measured,
  at: { nodes: number; streams: number; lastingS: number },
): Readonly<
  Record<"statements" | "rows" | "nodeRows" | "nodeRowBytes" | "walBytes" | "cores" | "connections", number>
>;
