// One open event stream (server-sent events, WHATWG HTML 9.2). It buffers at most one event for a slow reader.

export interface Reader {
  /** The response body. */
  readonly body: ReadableStream<Uint8Array>;
  /** Whether the reader and its connection have taken everything so far. */
  isReady(): boolean;
  /** Takes text of the event stream. Returns false and keeps nothing while it is not ready. */
  give(text: Uint8Array): boolean;
  /** Ends the stream after the text given so far. */
  end(): void;
}

/** Delay after which a browser reconnects, ms. */
const RETRY_MS = 2_000;
const OPENING = new TextEncoder().encode(`retry: ${RETRY_MS}\n\n`);

/** `ready` is called whenever it becomes ready; `gone` once, when the client has disconnected. */
export function openReader(on: { ready(): void; gone(): void }): Reader {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** Resolves the pending pull of a reader that waits for the next event. */
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
    // No buffering: `pull` is called only once the connection has taken the previous event.
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
