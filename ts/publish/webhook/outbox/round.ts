// Whose turn it is: organisations with due events, one after another, however many each has. Those of the oldest events
// come first; when there are more than one reading finds, a round goes through all. Epoch times in ms.

import { RecentMap } from "../../../limits/recent-map.ts";
import { PROBE_EVERY_MS } from "../customer-gate.ts";
import type { DueEvents } from "./due-events.ts";

/** Organisations that wait for their turn in memory; more wait in the store. */
export const QUEUE_LIMIT = 1_024;
/** A further page of organisations is read after this many turns, and when few wait for theirs. */
const TURNS_PER_PAGE = 64;
/** Turns in a row of an organisation whose customer answers: its connection is open, and opening one is what costs most. */
const TURNS_IN_A_ROW = 4;
/** Longest time between two looks at the store, ms. */
export const SLEEP_LIMIT_MS = 60_000;

export class Round {
  readonly #events: Pick<DueEvents, "oldest" | "next" | "page">;
  /** In the order of their turns. */
  readonly #queue = new Set<string>();
  /** Those that go on before the others. */
  readonly #first = new Set<string>();
  /** Organisation → how many turns in a row it has had. */
  readonly #inARow = new RecentMap<string, number>(QUEUE_LIMIT);
  /** The oldest due events are to be read. */
  #isCheckWanted = false;
  /** The last organisation of the page that was read; null: no round through all is in progress. */
  #after: string | null = null;
  #hasBegunAny = false;
  #turnsSincePage = 0;
  #checkAt = Number.POSITIVE_INFINITY;

  constructor(events: Pick<DueEvents, "oldest" | "next" | "page">) {
    this.#events = events;
  }

  /** When the oldest due events must be read. */
  get checkAt(): number {
    return this.#checkAt;
  }

  /** They must be read no later than `at`. */
  checkBy(at: number): void {
    this.#checkAt = Math.min(this.#checkAt, at);
  }

  /** The store failed: not before `at`. */
  postpone(at: number): void {
    this.#checkAt = at;
  }

  /** They must be read with the next turn. */
  wantCheck(): void {
    this.#isCheckWanted = true;
  }

  /** The organisation may have due events: it gets a turn. */
  add(organisation: string): void {
    if (this.#queue.size < QUEUE_LIMIT) this.#queue.add(organisation);
    else this.wantCheck();
  }

  /** The organisation's customer has just answered: its next turn comes before those of others, a few times. */
  goOn(organisation: string): void {
    const turns = (this.#inARow.get(organisation) ?? 0) + 1;
    this.#inARow.delete(organisation);
    if (turns >= TURNS_IN_A_ROW) return;
    this.#inARow.set(organisation, turns);
    this.#first.add(organisation);
  }

  /** A delivery began in this turn. */
  begun(): void {
    this.#hasBegunAny = true;
  }

  /** A look found no room, and waits for a delivery to end. */
  get isCheckWanted(): boolean {
    return this.#isCheckWanted;
  }

  /** Organisations wait for their turn, or are to be looked for. */
  get isWorkLeft(): boolean {
    return this.#first.size > 0 || this.#queue.size > 0 || this.#isCheckWanted || this.#after !== null;
  }

  /** The organisation whose turn it is; undefined when none waits. `isProbing`: some may be tried only now and then. */
  async next(now: number, isProbing: boolean): Promise<string | undefined> {
    const isMoreWanted = this.#queue.size === 0 || this.#turnsSincePage >= TURNS_PER_PAGE;
    if (this.#first.size === 0 && isMoreWanted) await this.#findMore(now, isProbing);
    const [organisation] = this.#first.size > 0 ? this.#first : this.#queue;
    if (organisation === undefined) return undefined;
    this.#first.delete(organisation);
    this.#queue.delete(organisation);
    this.#turnsSincePage += 1;
    return organisation;
  }

  /** Adds some at the end of the queue. */
  async #findMore(now: number, isProbing: boolean): Promise<void> {
    if (this.#queue.size >= QUEUE_LIMIT / 2) return;
    this.#turnsSincePage = 0;
    if (this.#isCheckWanted) {
      this.#isCheckWanted = false;
      // Before the store is read: a delivery that ends meanwhile may be due again earlier than what the store says.
      this.#checkAt = now + (isProbing ? PROBE_EVERY_MS : SLEEP_LIMIT_MS);
      const { organisations, more } = await this.#events.oldest(now);
      for (const organisation of organisations) this.#queue.add(organisation);
      if (more && this.#after === null) {
        this.#after = "";
        this.#hasBegunAny = false;
      }
      this.checkBy((await this.#events.next(now)) ?? Number.POSITIVE_INFINITY);
      return;
    }
    if (this.#after === null) return;
    const { organisations, last } = await this.#events.page(now, this.#after);
    this.#after = last;
    for (const organisation of organisations) this.#queue.add(organisation);
    if (last !== null) {
      if (organisations.length === 0) await this.#findMore(now, isProbing);
      return;
    }
    // A round in which a delivery began is followed by another: more than one reading finds may be left.
    if (this.#hasBegunAny) this.#isCheckWanted = true;
    else this.checkBy(now + PROBE_EVERY_MS);
  }
}
