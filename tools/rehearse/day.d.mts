/** What a service's players and ports saw: the longest time between two answers of a ready service, in ms. */
interface Watched {
  readonly frames: number;
  readonly refused: number;
  readonly notReadyMs: number;
}

export function rehearseDay(options: {
  readonly reloads: number;
  readonly streams: number;
  readonly tell?: (text: string) => void;
}): Promise<
  Watched & {
    readonly reloads: number;
    readonly killed: number;
    /** The service whose PostgreSQL was away. */
    readonly database: Watched;
    readonly wrong: readonly string[];
    readonly log: readonly string[];
  }
>;
