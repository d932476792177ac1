// Readers of the same events. Each event is serialised once for all of them. A reader that was not ready for an event
// gets no further ones until it is ready again, and then a snapshot of the current state.
import type { Reader } from "./reader.ts";

const COMMENT = new TextEncoder().encode(": still here\n\n");

export class Channel {
  /** Readers, and whether each has received everything so far. */
  readonly #readers = new Map<Reader, { isCurrent: boolean }>();
  readonly #whole: () => string | null;
  /** The serialised snapshot, until something changes. */
  #bytes: Uint8Array | null = null;

  /** `whole`: the text of a snapshot; null while nothing is known yet. */
  constructor(whole: () => string | null) {
    this.#whole = whole;
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0;
  }

  /** It gets the snapshot as soon as it is ready. */
  add(reader: Reader): void {
    this.#readers.set(reader, { isCurrent: false });
    this.catchUp(reader);
  }

  remove(reader: Reader): void {
    this.#readers.delete(reader);
  }

  /** Sends the snapshot to a reader that is ready and has missed something. */
  catchUp(reader: Reader): void {
    const state = this.#readers.get(reader);
    if (state === undefined || state.isCurrent || !reader.isReady()) return;
    this.#bytes ??= bytesOf(this.#whole());
    if (this.#bytes !== null) state.isCurrent = reader.give(this.#bytes);
  }

  /** Something has changed; `text` is the event. */
  send(text: string): void {
    this.#bytes = null;
    const bytes = bytesOf(text);
    for (const [reader, state] of [...this.#readers]) {
      if (state.isCurrent && bytes !== null) state.isCurrent = reader.give(bytes);
      else this.catchUp(reader);
    }
  }

  /** Sends the current snapshot to all readers that are ready and have missed something. */
  tellLate(): void {
    this.#bytes = null;
    for (const reader of [...this.#readers.keys()]) this.catchUp(reader);
  }

  /** Sends a comment to the readers that are up to date, so that proxies do not treat the connection as idle. */
  comment(): void {
    for (const [reader, { isCurrent }] of [...this.#readers]) if (isCurrent) reader.give(COMMENT);
  }

  /** Ends all its readers. */
  end(): void {
    for (const reader of [...this.#readers.keys()]) reader.end();
  }
}

function bytesOf(text: string | null): Uint8Array | null {
  return text === null ? null : new TextEncoder().encode(text);
}

/** One event as sent; JSON contains no line breaks. */
export function eventText(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
