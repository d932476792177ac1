// What happens to the page while it broadcasts: it is left, shown again, the network comes back.

export interface PageEvents {
  /** The page is being left: requests that are made now must outlive it. */
  onLeave(): void;
  /** The network is back, or the tab is shown again after a while in the background or a sleep. */
  onBack(): void;
}

/** Watches until the returned function is called. */
export function watchPage({ onLeave, onBack }: PageEvents): () => void {
  const onVisible = () => {
    if (!document.hidden) onBack();
  };
  addEventListener("pagehide", onLeave);
  addEventListener("online", onBack);
  document.addEventListener("visibilitychange", onVisible);
  return () => {
    removeEventListener("pagehide", onLeave);
    removeEventListener("online", onBack);
    document.removeEventListener("visibilitychange", onVisible);
  };
}
