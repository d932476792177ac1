// When the outbox looks for due events: one check at a time, at the latest when the next event is due; a pause while the
// store fails.
import type { Logger } from "pino";
import { PROBE_EVERY_MS } from "../customer-gate.ts";
import { type Round, SLEEP_LIMIT_MS } from "./round.ts";

/** Pause after the store failed, ms. */
const STORE_FAILED_PAUSE_MS = 5_000;

export class Checks {
  readonly #round: Round;
  readonly #clock: { now(): number };
  readonly #log: Logger;
  readonly #startDue: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, epoch ms. */
  #sleepsUntil = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | null = null;
  #checkAgain = false;
  /** No further check is planned. */
  #isStopped = false;
  #isClosed = false;
  /** Set for a while after the store could not be written: nothing is tried. */
  #isPaused = false;
  #resume: NodeJS.Timeout | undefined;

  constructor(deps: {
    readonly round: Round;
    readonly clock: { now(): number };
    readonly log: Logger;
    /** Starts what is due and has room. */
    readonly startDue: () => Promise<void>;
  }) {
    this.#round = deps.round;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#startDue = deps.startDue;
  }

  /** Nothing begins any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether deliveries may begin. */
  get isOpen(): boolean {
    return !this.#isClosed && !this.#isPaused;
  }

  get isChecking(): boolean {
    return this.#checking !== null;
  }

  checkAll(): Promise<void> {
    this.#round.wantCheck();
    return this.check();
  }

  /** The organisation may have due events: it gets a turn. */
  checkNext(organisation: string): Promise<void> {
    this.#round.add(organisation);
    return this.check();
  }

  /** A delivery has ended that nothing was waiting for: another one may be due earlier than planned. */
  checkIfDue(): void {
    const { isWorkLeft, checkAt } = this.#round;
    if (isWorkLeft || checkAt < this.#sleepsUntil || checkAt <= this.#clock.now()) void this.check();
  }

  /** Another one that is requested during a check is remembered. Never rejects. */
  check(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#isPaused) return this.#checking ?? Promise.resolve();
    if (this.#checking !== null) {
      this.#checkAgain = true;
      return this.#checking;
    }
    this.#checking = this.#run();
    return this.#checking;
  }

  async #run(): Promise<void> {
    do {
      this.#checkAgain = false;
      await this.#startDue().catch((err: unknown) => {
        this.#log.error({ err }, "outbox could not be read");
        this.#round.postpone(this.#clock.now() + STORE_FAILED_PAUSE_MS);
      });
    } while (this.#checkAgain && !this.#isPaused);
    this.#checking = null;
    clearTimeout(this.#timer);
    // A look that found no room waits for a delivery to end.
    const { isCheckWanted, checkAt } = this.#round;
    const untilCheck = Math.min(Math.max(checkAt - this.#clock.now(), 1), SLEEP_LIMIT_MS);
    const pause = isCheckWanted ? PROBE_EVERY_MS : untilCheck;
    if (this.#isStopped) return;
    this.#sleepsUntil = this.#clock.now() + pause;
    this.#timer = setTimeout(() => void this.checkAll(), pause);
  }

  /** The store can be read, and not written: logged once for all that failed at the same time. */
  pauseAfter(err: unknown): void {
    if (!this.#isPaused) this.#log.error({ err }, "outbox could not be written");
    this.#isPaused = true;
    clearTimeout(this.#resume);
    if (this.#isStopped) return;
    this.#resume = setTimeout(() => {
      this.#isPaused = false;
      void this.checkAll();
    }, STORE_FAILED_PAUSE_MS);
  }

  /** Checks run on request only. */
  stop(): void {
    this.#isStopped = true;
    this.#isPaused = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#resume);
  }

  close(): void {
    this.#isClosed = true;
  }
}
