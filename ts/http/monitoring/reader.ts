// One open event stream (server-sent events, WHATWG HTML 9.2). It holds one event at most: what a slow reader has not read
// yet is all that is kept for it.

export interface Reader {
  /** What the response sends. */
  readonly body: ReadableStream<Uint8Array>;
  /** Whether it has taken everything so far, and its connection too. */
  isReady(): boolean;
  /** Takes text of the event stream. False, and nothing is kept, while it is not ready. */
  give(text: Uint8Array): boolean;
  /** Nothing follows what it was given. */
  end(): void;
}

/** How soon a browser comes back after the end, ms. */
const RETRY_MS = 2_000;
const OPENING = new TextEncoder().encode(`retry: ${RETRY_MS}\n\n`);

/** `ready` is called whenever it becomes ready; `gone` once, when nobody reads any more. */
export function openReader(on: { ready(): void; gone(): void }): Reader {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** Ends the turn of a reader that waits for the next event. */
  let waiting: (() => void) | null = null;
  let over = false;
  let opening: Uint8Array | null = OPENING;
  const body = new ReadableStream<Uint8Array>(
    {
      start(made) {
        controller = made;
      },
      pull() {
        return new Promise<void>((resolve) => {
          waiting = resolve;
          on.ready();
        });
      },
      cancel() {
        if (over) return;
        over = true;
        waiting = null;
        on.gone();
      },
    },
    // Nothing is asked for before the connection has taken what came before.
    { highWaterMark: 0 },
  );
  return {
    body,
    isReady: () => waiting !== null,
    give(text) {
      if (over || waiting === null) return false;
      const next = waiting;
      waiting = null;
      controller?.enqueue(opening === null ? text : Buffer.concat([opening, text]));
      opening = null;
      next();
      return true;
    },
    end() {
      if (over) return;
      over = true;
      controller?.close();
      waiting?.();
      waiting = null;
      on.gone();
    },
  };
}
