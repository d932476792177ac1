export function runOracle(options: { nodes: number; names: number; publishes: number; faults: number }): Promise<{
  readonly allowed: number;
  readonly denied: number;
  readonly unanswered: number;
  /** Accepted publishes that ended, and those of them whose publish_done arrived; repeated deliveries. */
  readonly ended: number;
  readonly done: number;
  readonly repeated: number;
  /** Ended by another node. */
  readonly lost: number;
  readonly wrong: readonly string[];
  /** Names that were live twice at one moment. */
  readonly twice: readonly string[];
  /** Open publishes and undelivered events at the end. */
  readonly left: number;
}>;
