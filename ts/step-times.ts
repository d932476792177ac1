// How long the steps of a piece of work take. A step finds the work by the asynchronous context that it runs in, so that
// nobody hands it along. What nobody measures costs nothing.
import { AsyncLocalStorage } from "node:async_hooks";

/** An admission, so far the one kind of work that is measured. */
export interface Measured {
  readonly startedAt: number;
  /** By name, ms; the customer is asked while the intent is recorded. */
  readonly steps: Record<string, number>;
  clientId: number | null;
  organisation: string | null;
  isOver: boolean;
}

const current = new AsyncLocalStorage<Measured>();

/** The work that is measured in this context. */
export function measured(): Measured | undefined {
  return current.getStore();
}

/** Does `work` and measures the steps in it. */
export function measuring<T>(work: () => T): T {
  const startedAt = performance.now();
  return current.run({ startedAt, steps: {}, clientId: null, organisation: null, isOver: false }, work);
}

/** Does `work`, and if it is a step of what is being measured, notes how long that took. */
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

/** Milliseconds to a tenth. */
export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
