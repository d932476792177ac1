// Server-sent events while the page is visible. A browser allows six connections to one host, for all tabs together: a
// hidden tab closes its own. A refused event stream is requested again, with growing pauses.
import { type ReadonlySignal, signal } from "@preact/signals";
import { api } from "../shell/client.ts";
import { session } from "../shell/session.ts";

/** Pauses before a refused stream is requested again, ms; the last one repeats. */
const PAUSES_MS = [2_000, 5_000, 15_000, 30_000];

export interface EventStream {
  /** `lost`: what is shown is out of date. */
  readonly state: ReadonlySignal<"connecting" | "open" | "lost">;
  close(): void;
}

/** `handlers`: by the names of the events, called with their parsed data. */
export function openEvents(path: string, handlers: Readonly<Record<string, (said: never) => void>>): EventStream {
  const state = signal<"connecting" | "open" | "lost">("connecting");
  let source: EventSource | null = null;
  let refusals = 0;
  let probing: Promise<unknown> | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const disconnect = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const connect = () => {
    disconnect();
    const opened = new EventSource(path);
    source = opened;
    opened.onopen = () => {
      refusals = 0;
      state.value = "open";
    };
    for (const [name, handle] of Object.entries(handlers)) {
      opened.addEventListener(name, ({ data }: MessageEvent<string>) => handle(JSON.parse(data) as never));
    }
    opened.onerror = () => {
      state.value = "lost";
      if (opened.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
      timer = setTimeout(connect, PAUSES_MS[Math.min(refusals, PAUSES_MS.length - 1)]);
      refusals += 1;
      // Detects whether the session has ended: an EventSource does not expose the status of its response.
      probing ??= api
        .GET("/organisation")
        .catch(() => {})
        .finally(() => (probing = null));
    };
  };
  const onVisibility = () => {
    if (document.hidden) disconnect();
    else connect();
  };
  document.addEventListener("visibilitychange", onVisibility);
  // Signed in again.
  const unsubscribe = session.subscribe(({ state }) => {
    if (state === "in" && source?.readyState === EventSource.CLOSED) connect();
  });
  if (!document.hidden) connect();
  return {
    state,
    close() {
      unsubscribe();
      document.removeEventListener("visibilitychange", onVisibility);
      disconnect();
    },
  };
}
