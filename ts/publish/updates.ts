// The rhythm of update_publish for one publish (W14). What an answer means is decided elsewhere.

/** The first update comes up to this share earlier or later, so that publishes accepted together drift apart. */
const FIRST_JITTER = 0.1;

export interface Updates {
  /** No update begins after this; resolves when the one in flight has been answered. */
  stop(): Promise<void>;
}

/** Calls `post` once after `intervalMs`, then `intervalMs` after each answer, never twice at a time, until it returns
 *  "stop". `post` must not reject and must end by its own deadline. */
export function startUpdates(intervalMs: number, post: () => Promise<"continue" | "stop">): Updates {
  let stopped = false;
  let inFlight: Promise<void> = Promise.resolve();
  let timer = setTimeout(tick, intervalMs * (1 + FIRST_JITTER * (2 * Math.random() - 1)));

  function tick(): void {
    inFlight = post().then((next) => {
      if (!stopped && next === "continue") timer = setTimeout(tick, intervalMs);
    });
  }

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await inFlight;
    },
  };
}
