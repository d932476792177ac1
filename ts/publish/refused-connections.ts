// Logs RTMP connections refused before they requested a publish or a play: one line each, rate-limited so that the log
// stays readable.
import type { Logger } from "pino";
import type { ConnectionRefused } from "../media/events.ts";

/** Lines in a window; the rest are summed up in one line. */
const LINES_LIMIT = 30;
const WINDOW_MS = 60_000;

export function createRefusedConnections(deps: { readonly clock: { now(): number }; readonly log: Logger }): {
  note(refused: ConnectionRefused): void;
} {
  const { clock, log } = deps;
  let windowEndsAt = 0;
  let count = 0;
  return {
    note({ address, code, detail }) {
      const now = clock.now();
      // A window that ends far ahead means that the clock was set back.
      if (now >= windowEndsAt || windowEndsAt - now > WINDOW_MS) {
        const omitted = count - LINES_LIMIT;
        if (omitted > 0) log.warn({ omitted }, "more RTMP connections were refused than are logged one by one");
        windowEndsAt = now + WINDOW_MS;
        count = 0;
      }
      count += 1;
      if (count <= LINES_LIMIT) log.info({ address, code, detail }, "RTMP connection refused");
    },
  };
}
