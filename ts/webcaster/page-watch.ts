// Page events during a broadcast: the page is left or shown again, the network comes back.

export interface PageEvents {
  /** The page is being left: requests made here must outlive it. */
  onLeave(): void;
  /** The network is back, or the tab is shown again after some time in the background or asleep. */
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
