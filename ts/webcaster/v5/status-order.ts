// The order in which a page learns of its broadcast's progress. The browser's connection, the reply to the answer and
// the service's status arrive in any order; pages see StartBroadcastSuccess, then connected, then what the service says.
import type { BroadcastStatus } from "./events.ts";

export class StatusOrder {
  readonly #say: (status: BroadcastStatus) => void;
  #hasStarted = false;
  #isConnected = false;
  #hasSaidConnected = false;
  /** The service's latest status before the start. */
  #early: BroadcastStatus | null = null;

  constructor(say: (status: BroadcastStatus) => void) {
    this.#say = say;
  }

  /** StartBroadcastSuccess has been emitted. */
  handleStarted(): void {
    this.#hasStarted = true;
    if (this.#isConnected) this.handleConnected();
    if (this.#early !== null) this.#say(this.#early);
    this.#early = null;
  }

  /** ICE and DTLS are complete, as the browser reports it or as the service's status implies it. */
  handleConnected(): void {
    this.#isConnected = true;
    if (!this.#hasStarted || this.#hasSaidConnected) return;
    this.#hasSaidConnected = true;
    this.#say("connected");
  }

  /** The service sends its status only after ICE and DTLS. */
  handleStatus(status: "broadcasting" | "reconnecting"): void {
    this.handleConnected();
    if (this.#hasStarted) this.#say(status);
    else this.#early = status;
  }
}
