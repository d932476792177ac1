// Measures the duration of the steps of a piece of work. A step finds the work through its asynchronous context, so
// that it need not be passed along. Without measurement it costs nothing.
import { AsyncLocalStorage } from "node:async_hooks";

/** The work being measured: an admission. */
export interface Measured {
  readonly startedAt: number;
  /** By name, ms; the customer is asked while the intent is recorded, so these overlap. */
  readonly steps: Record<string, number>;
  clientId: number | null;
  organisation: string | null;
  isOver: boolean;
}

const current = new AsyncLocalStorage<Measured>();

/** The work being measured in this context. */
export function measured(): Measured | undefined {
  return current.getStore();
}

/** Runs `work` and measures the steps in it. */
export function measuring<T>(work: () => T): T {
  const startedAt = performance.now();
  return current.run({ startedAt, steps: {}, clientId: null, organisation: null, isOver: false }, work);
}

/** Runs `work`, and if it is a step of measured work, records its duration. */
export async function step<T>(name: string, work: () => Promise<T>, clientId: number | null = null): Promise<T> {
  const whole = current.getStore();
  if (whole === undefined || whole.isOver) return await work();
  if (clientId !== null) whole.clientId = clientId;
  const startedAt = performance.now();
  try {
    return await work();
  } finally {
    whole.steps[name] = tenths(performance.now() - startedAt);
  }
}

/** Milliseconds, rounded to a tenth. */
export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
