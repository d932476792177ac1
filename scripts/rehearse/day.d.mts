export function rehearseDay(options: {
  readonly reloads: number;
  readonly streams: number;
  readonly tell?: (text: string) => void;
}): Promise<{
  readonly reloads: number;
  readonly killed: number;
  readonly frames: number;
  readonly refused: number;
  readonly notReadyMs: number;
  readonly wrong: readonly string[];
  readonly log: readonly string[];
}>;
