export interface Death {
  /** Publishes whose end the customer was told, and ids of those events. */
  readonly told: number;
  readonly events: number;
  /** From the last sign of life until the store has every end, and until the customer was told every one. */
  readonly recordedMs: number;
  readonly endedMs: number;
  /** Ends that each of the others recorded. */
  readonly ends: readonly number[];
  /** The longest heartbeat of the others, and the longest time between two. */
  readonly beatMs: number;
  readonly gapMs: number;
  /** Others that were declared dead. */
  readonly lost: number;
  /** CPU time of the others from the death until every end was told. */
  readonly cpuMs: number;
  readonly pulledBytes: number;
}

export function measureDeath(of: {
  readonly publishes: number;
  readonly survivors: number;
  readonly pulls: number;
  readonly delayMs: number;
}): Promise<Death>;
