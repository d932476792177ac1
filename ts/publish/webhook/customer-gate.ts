// Keeps one slow customer from affecting the others (W25): it limits calls in flight, and once a customer only times
// out it lets nothing through except an occasional probe. One gate per organisation and URL. It opens no connection.
import type { Deadline } from "./deadline.ts";

/** Calls in flight to one customer; further ones wait within their own deadline. */
export const IN_FLIGHT_LIMIT = 100;
/** Calls that wait; a further one is refused immediately, since it would hardly be served in time. */
const WAITING_LIMIT = 2_000;
/** This many time-outs in a row open the breaker. */
export const OPEN_AFTER = 10;
/** While the breaker is open one call is let through this often, ms. */
export const PROBE_EVERY_MS = 5_000;

/** Waiting calls that an opening breaker refuses in one turn of the event loop. */
const TURNED_AWAY_AT_A_TIME = 20;

export type Entry = "entered" | "breaker_open" | "no_place" | "deadline";

/** `now` is a monotonic time, ms. */
export class CustomerGate {
  #inFlight = 0;
  #lateInARow = 0;
  /** null: the breaker is closed. */
  #nextProbeAt: number | null = null;
  /** In order of arrival. */
  readonly #waiting = new Set<(entry: Entry) => void>();

  get inFlight(): number {
    return this.#inFlight;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether the breaker is open. */
  get isOpen(): boolean {
    return this.#nextProbeAt !== null;
  }

  /** Whether it equals a fresh gate, so that it can be forgotten. */
  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#waiting.size === 0 && this.#lateInARow === 0 && !this.isOpen;
  }

  /** `entered`: the call may proceed and must end with `leave`. */
  async enter(now: number, deadline: Deadline): Promise<Entry> {
    if (this.#nextProbeAt !== null) {
      if (now < this.#nextProbeAt || this.#inFlight >= IN_FLIGHT_LIMIT) return "breaker_open";
      this.#nextProbeAt = now + PROBE_EVERY_MS;
      this.#inFlight += 1;
      return "entered";
    }
    if (this.#inFlight < IN_FLIGHT_LIMIT) {
      this.#inFlight += 1;
      return "entered";
    }
    if (this.#waiting.size >= WAITING_LIMIT) return "no_place";
    return await new Promise<Entry>((resolve) => {
      const settle = (entry: Entry): void => {
        this.#waiting.delete(settle);
        deadline.forget(late);
        resolve(entry);
      };
      const late = (): void => settle("deadline");
      this.#waiting.add(settle);
      deadline.whenOver(late);
    });
  }

  /** A call has ended; `late`: by its deadline, without a status. */
  leave(late: boolean, now: number): void {
    this.#inFlight -= 1;
    this.#lateInARow = late ? this.#lateInARow + 1 : 0;
    if (!late) this.#nextProbeAt = null;
    else if (this.#nextProbeAt === null && this.#lateInARow >= OPEN_AFTER) {
      this.#nextProbeAt = now + PROBE_EVERY_MS;
      this.#turnAway();
    }
    this.#letIn();
  }

  /** Forgets the time-outs so far: the breaker closes. Calls in flight still count. */
  reset(): void {
    this.#lateInARow = 0;
    this.#nextProbeAt = null;
    this.#letIn();
  }

  #letIn(): void {
    for (const settle of this.#waiting) {
      if (this.isOpen || this.#inFlight >= IN_FLIGHT_LIMIT) return;
      this.#inFlight += 1;
      settle("entered");
    }
  }

  /** In batches, so that other work runs in between: each refusal is a publish to be denied. */
  #turnAway(): void {
    let places = TURNED_AWAY_AT_A_TIME;
    for (const settle of this.#waiting) {
      if (!this.isOpen) return;
      settle("breaker_open");
      places -= 1;
      if (places > 0) continue;
      setImmediate(() => this.#turnAway());
      return;
    }
  }
}
