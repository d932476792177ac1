export function rehearse(options: {
  /** Built checkouts. */
  before: string;
  after: string;
  nodes: number;
  /** Number of streams on each node all the time. */
  streams: number;
  /** Between two replacements, ms. */
  calmMs: number;
  tell?: (text: string) => void;
}): Promise<{
  readonly replaced: number;
  /** Requests to the API, and those of them that were answered 5xx with Retry-After. */
  readonly requests: number;
  readonly refused: number;
  /** Publishes that began and ended meanwhile. */
  readonly passing: number;
  /** Streams that were played from their beginning to their end, and the frames of their video. */
  readonly watched: number;
  readonly frames: number;
  readonly commands: number;
  /** How long each replacement took, seconds. */
  readonly takenS: readonly number[];
  /** The last migration. */
  readonly tables: string;
  /** Publishes that the customer accepted, those whose publish_done arrived, and repeated deliveries. */
  readonly accepted: number;
  readonly done: number;
  readonly repeated: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
  /** Log lines of the nodes. */
  readonly log: readonly string[];
}>;
