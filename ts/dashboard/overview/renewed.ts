// Loads again while the page is visible, and when it becomes visible.
import { useEffect } from "preact/hooks";
import { type Loaded, useLoaded, useRepeated } from "../shell/loaded.ts";

/** How often figures are loaded again, ms. */
const RENEWED_MS = 30_000;

export function useRenewed<T>(load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const loaded = useLoaded(load);
  const { reload } = loaded;
  useRepeated(reload, RENEWED_MS);
  useEffect(() => {
    const renew = () => !document.hidden && void reload();
    document.addEventListener("visibilitychange", renew);
    return () => document.removeEventListener("visibilitychange", renew);
  }, [reload]);
  return loaded;
}
