// Log lines that strangers cause: one for each event, up to a limit in a minute for each kind of event, so that the log
// stays readable and small.

const WINDOW_MS = 60_000;

export interface LogLines {
  /** Calls `write` unless this kind has had its lines; `sumUp` with the number of those left out in the last window. */
  line(kind: string, write: () => void, sumUp: (omitted: number) => void): void;
}

/** `linesLimit`: of one kind in a minute. Kinds are few: each is kept. */
export function createLogLines(clock: { now(): number }, linesLimit: number): LogLines {
  const windows = new Map<string, { endsAt: number; count: number }>();
  return {
    line(kind, write, sumUp) {
      const now = clock.now();
      const window = windows.get(kind) ?? { endsAt: 0, count: 0 };
      windows.set(kind, window);
      // A window that ends far ahead means that the clock was set back.
      if (now >= window.endsAt || window.endsAt - now > WINDOW_MS) {
        if (window.count > linesLimit) sumUp(window.count - linesLimit);
        window.endsAt = now + WINDOW_MS;
        window.count = 0;
      }
      window.count += 1;
      if (window.count <= linesLimit) write();
    },
  };
}
