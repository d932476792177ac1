// Loads data from the API for a page: once, again on demand, and page after page.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  /** null until loaded; the previous value stays during a reload. */
  readonly value: T | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  reload(): Promise<void>;
  /** Sets a value that is already known, before the service has confirmed it. */
  set(value: T): void;
}

/** Loads when the component appears and whenever one of `inputs` changes. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[] = []): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown; isLoading: boolean }>({
    value: null,
    error: null,
    isLoading: true,
  });
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
  useEffect(() => {
    void reload();
    return () => running.current?.abort();
  }, [reload]);
  const set = useCallback((value: T) => setState({ value, error: null, isLoading: false }), []);
  return { ...state, reload, set };
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

/** A list in pages, by `x-next-cursor`. */
export function usePages<T>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<PageAnswer<T>>,
  answer: (call: Promise<PageAnswer<T>>) => Promise<readonly T[]>,
  inputs: readonly unknown[] = [],
): Pages<T> {
  const cursor = useRef<string | null>(null);
  const page = async (from: string | undefined, signal: AbortSignal) => {
    const call = await load(from, signal);
    const rows = await answer(Promise.resolve(call));
    cursor.current = call.response.headers.get("x-next-cursor");
    return rows;
  };
  const loaded = useLoaded<readonly T[]>((signal) => page(undefined, signal), inputs);
  const [isLoadingMore, setLoadingMore] = useState(false);
  const [moreError, setMoreError] = useState<unknown>(null);
  return {
    rows: loaded.value,
    error: loaded.error ?? moreError,
    isLoading: loaded.isLoading || isLoadingMore,
    hasMore: cursor.current !== null,
    async more() {
      if (cursor.current === null || isLoadingMore || loaded.value === null) return;
      setLoadingMore(true);
      try {
        const rows = await page(cursor.current, new AbortController().signal);
        loaded.set([...loaded.value, ...rows]);
        setMoreError(null);
      } catch (error) {
        setMoreError(error);
      }
      setLoadingMore(false);
    },
    reload: loaded.reload,
    change: (change) => loaded.value !== null && loaded.set(change(loaded.value)),
  };
}
