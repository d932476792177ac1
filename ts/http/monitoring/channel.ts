// Readers of the same events. Each event is made into text once for all of them. One that was not ready for an event is
// told no other until it is ready again: then it gets the whole as it is by then.
import type { Reader } from "./reader.ts";

const COMMENT = new TextEncoder().encode(": still here\n\n");

export class Channel {
  /** Readers, and whether they have been told everything so far. */
  readonly #readers = new Map<Reader, { isCurrent: boolean }>();
  readonly #whole: () => string | null;
  /** The whole as bytes, until something changes. */
  #bytes: Uint8Array | null = null;

  /** `whole`: the text that tells everything; null while nothing is known yet. */
  constructor(whole: () => string | null) {
    this.#whole = whole;
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0;
  }

  /** It is told the whole as soon as it is ready. */
  add(reader: Reader): void {
    this.#readers.set(reader, { isCurrent: false });
    this.catchUp(reader);
  }

  remove(reader: Reader): void {
    this.#readers.delete(reader);
  }

  /** Tells the whole to a reader that is ready and missed something. */
  catchUp(reader: Reader): void {
    const state = this.#readers.get(reader);
    if (state === undefined || state.isCurrent || !reader.isReady()) return;
    this.#bytes ??= bytesOf(this.#whole());
    if (this.#bytes !== null) state.isCurrent = reader.give(this.#bytes);
  }

  /** Something has changed; `text` tells what. */
  tell(text: string): void {
    this.#bytes = null;
    const bytes = bytesOf(text);
    for (const [reader, state] of [...this.#readers]) {
      if (state.isCurrent && bytes !== null) state.isCurrent = reader.give(bytes);
      else this.catchUp(reader);
    }
  }

  /** Tells the whole, as it is now, to those who are ready and missed something. */
  tellLate(): void {
    this.#bytes = null;
    for (const reader of [...this.#readers.keys()]) this.catchUp(reader);
  }

  /** Says nothing, to those who are told nothing else at this moment: proxies do not take the connection for idle. */
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

/** One event as it is sent; JSON has no line break. */
export function eventText(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
