// Keeps one slow customer from affecting the others (W25): it limits the calls in flight of an organisation, publish calls
// first, and once a webhook only times out it lets nothing through except an occasional probe. One gate per organisation
// and URL, and the places of an organisation for all its gates. It opens no connection.
import { PriorityQueue } from "../../capacity/priority-queue.ts";
import { PRIORITIES, type Priority, rankOf } from "./call-priority.ts";
import type { Deadline } from "./deadline.ts";

/** Calls in flight to one organisation; further ones wait within their own deadline. */
export const IN_FLIGHT_LIMIT = 100;
/** Calls of one organisation that wait; a further one replaces a less urgent one or is refused immediately, since it would
 *  hardly be served in time. */
const WAITING_LIMIT = 2_000;
/** This many time-outs in a row open the breaker. */
export const OPEN_AFTER = 10;
/** While the breaker is open one call is let through this often, ms. */
export const PROBE_EVERY_MS = 5_000;

/** Waiting calls that an opening breaker refuses in one turn of the event loop. */
const TURNED_AWAY_AT_A_TIME = 20;

export type Entry = "entered" | "breaker_open" | "no_place" | "deadline";

interface Waiting {
  readonly gate: CustomerGate;
  readonly deadline: Deadline;
  readonly settle: (entry: Entry) => void;
}

/** The calls in flight of one organisation, whatever their URL, and those that wait. */
export class CallPlaces {
  #inFlight = 0;
  readonly #waiting = new PriorityQueue<Waiting>(PRIORITIES.length);

  get isFull(): boolean {
    return this.#inFlight >= IN_FLIGHT_LIMIT;
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#waiting.size === 0;
  }

  take(): void {
    this.#inFlight += 1;
  }

  free(): void {
    this.#inFlight -= 1;
    this.letIn();
  }

  /** False when there is no room to wait. */
  queue(waiting: Waiting, priority: Priority): boolean {
    if (this.#waiting.size >= WAITING_LIMIT) {
      const displaced = this.#waiting.displace(rankOf(priority));
      if (displaced === undefined) return false;
      displaced.settle("no_place");
    }
    this.#waiting.add(waiting, rankOf(priority));
    return true;
  }

  leave(waiting: Waiting): void {
    this.#waiting.delete(waiting);
  }

  /** Those of a gate whose breaker is open are refused by that gate. */
  letIn(): void {
    for (const { gate, deadline, settle } of this.#waiting) {
      if (this.isFull) return;
      if (deadline.hasPassed) settle("deadline");
      else if (!gate.isOpen) settle("entered");
    }
  }
}

/** `now` is a monotonic time, ms. */
export class CustomerGate {
  readonly #places: CallPlaces;
  #inFlight = 0;
  #lateInARow = 0;
  /** null: the breaker is closed. */
  #nextProbeAt: number | null = null;
  /** Its waiting calls in order of arrival. */
  readonly #waiting = new Set<Waiting>();

  constructor(places = new CallPlaces()) {
    this.#places = places;
  }

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
  async enter(now: number, deadline: Deadline, priority: Priority = "publish"): Promise<Entry> {
    if (this.#nextProbeAt !== null) {
      if (now < this.#nextProbeAt || this.#places.isFull) return "breaker_open";
      this.#nextProbeAt = now + PROBE_EVERY_MS;
      this.#take();
      return "entered";
    }
    if (!this.#places.isFull) {
      this.#take();
      return "entered";
    }
    return await new Promise<Entry>((resolve) => {
      const settle = (entry: Entry): void => {
        this.#waiting.delete(waiting);
        this.#places.leave(waiting);
        deadline.forget(late);
        if (entry === "entered") this.#take();
        resolve(entry);
      };
      const late = (): void => settle("deadline");
      const waiting: Waiting = { gate: this, deadline, settle };
      if (!this.#places.queue(waiting, priority)) {
        resolve("no_place");
        return;
      }
      this.#waiting.add(waiting);
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
    this.#places.free();
  }

  /** Forgets the time-outs so far: the breaker closes. Calls in flight still count. */
  reset(): void {
    this.#lateInARow = 0;
    this.#nextProbeAt = null;
    this.#places.letIn();
  }

  #take(): void {
    this.#inFlight += 1;
    this.#places.take();
  }

  /** In batches, so that other work runs in between: each refusal is a publish to be denied. */
  #turnAway(): void {
    let places = TURNED_AWAY_AT_A_TIME;
    for (const { settle } of this.#waiting) {
      if (!this.isOpen) return;
      settle("breaker_open");
      places -= 1;
      if (places > 0) continue;
      setImmediate(() => this.#turnAway());
      return;
    }
  }
}
