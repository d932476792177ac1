// Keeps a phone's screen on while it is live: a phone that goes to sleep stops its camera.

export interface ScreenLock {
  /** Requested again whenever the page becomes visible: browsers release it when the page is hidden. */
  hold(): void;
  release(): void;
}

/** `wakeLock`: from the navigator; older browsers have none. */
export function createScreenLock(page: Document, wakeLock: WakeLock | undefined): ScreenLock {
  let isWanted = false;
  let held: WakeLockSentinel | null = null;

  const isHeld = () => held?.released === false;

  async function take(): Promise<void> {
    if (!isWanted || page.visibilityState !== "visible" || isHeld()) return;
    // Refused, for instance because the battery is low: the broadcast continues without.
    const taken = (await wakeLock?.request("screen").catch(() => null)) ?? null;
    // The broadcast may be over by then, or another request was answered first.
    if (isWanted && !isHeld()) held = taken;
    else void taken?.release();
  }

  function drop(): void {
    void held?.release();
    held = null;
  }

  page.addEventListener("visibilitychange", () => void take());
  return {
    hold() {
      isWanted = true;
      void take();
    },
    release() {
      isWanted = false;
      drop();
    },
  };
}
