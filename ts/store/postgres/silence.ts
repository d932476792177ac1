// Decides whether a connection that does not answer is lost: when its server lost power or a firewall forgot the
// connection, nothing closes it, and a statement would wait for its whole limit. A statement that the server is still
// executing, or that waits for a lock or for a standby, is not lost.
import type { DatabaseServer } from "./database-url.ts";
import type { Servers } from "./servers.ts";

/** After this long without an answer the server is queried on another connection, ms; then again and again. */
export const SILENT_AFTER_MS = 700;
/** Pause before the second such query, and the longest, ms: twice as long each time, since a server may be slow because
 *  it has too much to do. */
const ASK_AGAIN_MS = 250;
const PAUSE_LIMIT_MS = 2_000;
/** How often in succession the server must say that it has nothing to do for the connection: an answer may be on its
 *  way. */
const IDLE_TIMES = 2;

/** A process that serves a connection, on its server. */
export interface Backend {
  readonly pid: number;
  /** When it was started, seconds since 1970. */
  readonly start: string;
}

/** What the server says of the process that serves the connection; it does not resolve while the server is silent. */
export type ActivityOf = (server: DatabaseServer, backend: Backend) => Promise<"busy" | "idle">;

export interface Silent {
  readonly servers: Servers;
  readonly server: DatabaseServer;
  /** Its process on the server; null when that is unknown. */
  readonly backend: Backend | null;
  readonly activityOf: ActivityOf;
  /** Whether another server has taken its place. */
  readonly isReplaced: () => Promise<boolean>;
}

/** Calls `lose` with the reason when the connection turns out to be lost; the returned function ends the watch. */
export function watchSilence(silent: Silent, lose: (reason: string) => void): () => void {
  let over = false;
  let idle = 0;
  let pauseMs = ASK_AGAIN_MS;
  const next = (ms: number): NodeJS.Timeout => setTimeout(() => void ask(), ms).unref();
  let timer = next(SILENT_AFTER_MS);

  async function ask(): Promise<void> {
    const found = await lossOf();
    if (over) return;
    if (found !== null) return lose(found);
    timer = next(pauseMs);
    pauseMs = Math.min(2 * pauseMs, PAUSE_LIMIT_MS);
  }

  async function lossOf(): Promise<string | null> {
    const { backend, server } = silent;
    // Both at once: a server without power answers nothing, and its successor answers immediately.
    const replaced = silent
      .isReplaced()
      .then((is) => (is ? "replaced" : "unknown"))
      .catch(() => "unknown" as const);
    const activity = backend === null ? "unknown" : silent.activityOf(server, backend).catch(() => "unknown" as const);
    const first = await Promise.race([replaced.then((is) => (is === "replaced" ? is : activity)), activity]);
    const found = first === "unknown" ? await replaced : first;
    if (found === "replaced") return `another server has taken the place of ${server.address}, which does not answer`;
    idle = found === "idle" ? idle + 1 : 0;
    return idle < IDLE_TIMES ? null : `${server.address} does not know the connection any more`;
  }

  return () => {
    over = true;
    clearTimeout(timer);
  };
}
