// A fetch that retries where that is safe: when no response came, and when the service reports a temporary error. A
// POST carries an Idempotency-Key, so that it is not carried out twice.

/** How often a request is retried. */
export const RETRIES_DEFAULT = 2;
/** First pause, doubled each time, and the longest one, ms. */
const PAUSE_MS = 250;
const PAUSE_LIMIT_MS = 10_000;
/** The first request with this Idempotency-Key is still running. */
const ANSWER_PENDING = 9410;

export type Fetch = (request: Request) => Promise<Response>;

export function retryingFetch(
  send: Fetch,
  retries: number,
  pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
): Fetch {
  return async (request) => {
    if (request.method === "POST" && !request.headers.has("idempotency-key")) {
      request.headers.set("idempotency-key", crypto.randomUUID());
    }
    for (let left = retries; ; left -= 1) {
      const again = left > 0 ? request.clone() : null;
      const fallback = PAUSE_MS * 2 ** (retries - left);
      try {
        const response = await send(request);
        if (again === null || !(await isForLater(response))) return response;
        await pause(Math.min(Number(response.headers.get("retry-after") ?? 0) * 1_000 || fallback, PAUSE_LIMIT_MS));
      } catch (error) {
        // Whether the DELETE was carried out is unknown: a second one might return "unknown" although the first
        // succeeded.
        if (again === null || request.method === "DELETE" || request.signal.aborted) throw error;
        await pause(fallback);
      }
      if (again !== null) request = again;
    }
  };
}

async function isForLater(response: Response): Promise<boolean> {
  if (response.status === 429 || response.status === 503) return true;
  return response.status === 409 && (await response.clone().text()).includes(String(ANSWER_PENDING));
}
