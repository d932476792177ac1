// Detects that nothing is received from the service any more. A browser takes up to 15 s to report a failed connection;
// the service sends several packets a second while media flows, so that its silence is noticed sooner. Pure.

/** Silence after which a connection that sends media counts as interrupted, milliseconds. */
export const SILENCE_LIMIT_MS = 2_500;
/** The same without media: then only ICE checks are answered, every few seconds. */
export const IDLE_LIMIT_MS = 10_000;

export class Heartbeat {
  #count: number | null = null;
  #heardAtMs = 0;

  /** Takes a reading (`receivedCount`) at a time in milliseconds; true when something new was received. A smaller count
   *  comes from another network path, which counts from 0. */
  add(count: number, nowMs: number): boolean {
    const isNew = this.#count === null || (count !== this.#count && count > 0);
    if (isNew) this.#heardAtMs = nowMs;
    this.#count = count;
    return isNew;
  }

  /** Whether nothing has been received for too long. */
  isSilent(nowMs: number, isSending: boolean): boolean {
    return this.#count !== null && nowMs - this.#heardAtMs > (isSending ? SILENCE_LIMIT_MS : IDLE_LIMIT_MS);
  }
}
