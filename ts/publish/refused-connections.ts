// Logs RTMP connections refused before they requested a publish or a play: one line each, rate-limited so that the log
// stays readable.
import type { Logger } from "pino";
import type { ConnectionRefused } from "../media/events.ts";
import { createLogLines } from "./refusals/log-lines.ts";

/** Lines in a minute; the rest are summed up in one line. */
const LINES_LIMIT = 30;

export interface RefusedConnections {
  note(refused: ConnectionRefused): void;
}

export function createRefusedConnections(deps: {
  readonly clock: { now(): number };
  readonly log: Logger;
}): RefusedConnections {
  const { clock, log } = deps;
  const lines = createLogLines(clock, LINES_LIMIT);
  return {
    note({ address, code, detail }) {
      lines.line(
        "connection",
        () => log.info({ address, code, detail }, "RTMP connection refused"),
        (omitted) => log.warn({ omitted }, "more RTMP connections were refused than are logged one by one"),
      );
    },
  };
}
