// Loads data from the API for a page: once, again on demand, and page after page.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  /** null until loaded, and again for other inputs; the previous value stays during a reload. */
  readonly value: T | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  reload(): Promise<void>;
  /** Sets a value that is already known, before the service has confirmed it. */
  set(value: T): void;
  /** The same for a part of it. What `value` was when the work began may be out of date when it is done. */
  change(change: (value: T) => T): void;
}

/** Nothing is known yet. */
const LOADING = { value: null, error: null, isLoading: true };

/** Loads when the component appears and whenever one of `inputs` changes. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[] = []): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown; isLoading: boolean }>(LOADING);
  const running = useRef<AbortController | null>(null);
  const reload = useCallback(async () => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, isLoading: true }));
    try {
      const value = await load(controller.signal);
      if (!controller.signal.aborted) setState({ value, error: null, isLoading: false });
    } catch (error) {
      if (!controller.signal.aborted) setState((before) => ({ ...before, error, isLoading: false }));
    }
  }, inputs);
  // Before it is painted: the value of other inputs is never shown with these.
  useLayoutEffect(() => {
    setState(LOADING);
    void reload();
    return () => running.current?.abort();
  }, [reload]);
  const set = useCallback((value: T) => setState({ value, error: null, isLoading: false }), []);
  const change = useCallback((act: (value: T) => T) => {
    setState((before) => (before.value === null ? before : { ...before, value: act(before.value) }));
  }, []);
  return { ...state, reload, set, change };
}

/** Does it again and again while the page is visible. */
export function useRepeated(act: () => unknown, everyMs: number): void {
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && act(), everyMs);
    return () => clearInterval(timer);
  }, [act, everyMs]);
}

export interface Pages<T> {
  readonly rows: readonly T[] | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Whether there is a further page for `more` to load. */
  readonly hasMore: boolean;
  more(): Promise<void>;
  reload(): Promise<void>;
  change(change: (rows: readonly T[]) => readonly T[]): void;
}

interface PageAnswer<T> {
  readonly data?: readonly T[];
  readonly error?: unknown;
  readonly response: Response;
}

/** The state of a further page that nobody has asked for. */
const NOT_ASKED = { isLoading: false, error: null };

/** A list in pages, by `x-next-cursor`. */
export function usePages<T>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<PageAnswer<T>>,
  answer: (call: Promise<PageAnswer<T>>) => Promise<readonly T[]>,
  inputs: readonly unknown[] = [],
): Pages<T> {
  const cursor = useRef<string | null>(null);
  /** Aborts the further page that is loading. */
  const following = useRef<AbortController | null>(null);
  const [further, setFurther] = useState<{ isLoading: boolean; error: unknown }>(NOT_ASKED);
  const one = async (from: string | undefined, signal: AbortSignal) => {
    const call = await load(from, signal);
    return { rows: await answer(Promise.resolve(call)), next: call.response.headers.get("x-next-cursor") };
  };
  const page = async (first: string | undefined, signal: AbortSignal) => {
    const { rows, next } = await pastEmptyPages(
      first,
      (from) => one(from, signal),
      (of) => (of.rows.length === 0 ? (of.next ?? null) : null),
    );
    if (!signal.aborted) cursor.current = next;
    return rows;
  };
  const loaded = useLoaded<readonly T[]>((signal) => {
    // A further page belongs to the list that is replaced now.
    following.current?.abort();
    setFurther(NOT_ASKED);
    return page(undefined, signal);
  }, inputs);
  useEffect(() => () => following.current?.abort(), []);
  const isLoading = loaded.isLoading || further.isLoading;
  return {
    rows: loaded.value,
    error: loaded.error ?? further.error,
    isLoading,
    hasMore: cursor.current !== null,
    async more() {
      if (cursor.current === null || isLoading || loaded.value === null) return;
      const controller = new AbortController();
      following.current = controller;
      setFurther({ isLoading: true, error: null });
      try {
        const rows = await page(cursor.current, controller.signal);
        if (controller.signal.aborted) return;
        loaded.change((before) => [...before, ...rows]);
        setFurther(NOT_ASKED);
      } catch (error) {
        if (!controller.signal.aborted) setFurther({ isLoading: false, error });
      }
    },
    reload: loaded.reload,
    change: loaded.change,
  };
}

/** So many empty pages of a filtered list are followed by themselves; then the reader is asked: one request looks at a
 *  bounded number of rows, so a page may be empty and still have a next one. */
export const FOLLOWED_LIMIT = 5;

/** The first page from `cursor` on that has rows, or the last one loaded. `next`: the cursor behind a page without rows;
 *  null when it has some, or is the last one. */
export async function pastEmptyPages<Cursor, Page>(
  cursor: Cursor,
  load: (cursor: Cursor) => Promise<Page>,
  next: (page: Page) => Cursor | null,
): Promise<Page> {
  let page = await load(cursor);
  for (let followed = 0; followed < FOLLOWED_LIMIT; followed += 1) {
    const behind = next(page);
    if (behind === null) break;
    page = await load(behind);
  }
  return page;
}
