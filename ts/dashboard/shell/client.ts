// The API client of the dashboard: the typed client of ts/client, with the session's cookie instead of a key.
import createClient from "openapi-fetch";
import { answerOf, HeadgateError, isHeadgateError, type Records } from "../../client/index.ts";
import type { paths } from "../../client/paths.d.ts";
import { retryingFetch } from "../../client/retry.ts";

export { answerOf, HeadgateError, isHeadgateError, type Records };

/** How often a call without a response is sent again. */
const RETRIES = 2;

/** Proves that a request comes from this page (`csrf_token` of /me). */
let pageToken: string | null = null;
let sessionEnded: (signal: AbortSignal) => Promise<boolean> = async () => false;

export function setPageToken(token: string | null): void {
  pageToken = token;
}

/** `act` is called when a response shows that nobody, or a person with another role, is signed in. It resolves to whether
 *  the same person is signed in again, so that the call is sent once more; `signal`: the call is no longer wanted. */
export function onSessionEnd(act: (signal: AbortSignal) => Promise<boolean>): void {
  sessionEnded = act;
}

async function send(request: Request): Promise<Response> {
  if (pageToken !== null && request.method !== "GET") request.headers.set("x-csrf-token", pageToken);
  return await fetch(request);
}

async function sendWatched(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await send(request);
  return response.status === 403 && (await sessionEnded(request.signal)) ? await send(again) : response;
}

/** Calls like `api.GET("/stream/{id}", { params: { path: { id } } })`; each returns `data` or `error`, and `response`.
 *  `answerOf(call)` returns the data or throws a `HeadgateError`. */
export const api = createClient<paths, "application/json">({
  baseUrl: location.origin,
  fetch: retryingFetch(sendWatched, RETRIES),
});

/** The same, without retries and without checking the session: for signing in and out. */
export const plainApi = createClient<paths, "application/json">({ baseUrl: location.origin, fetch: send });

/** One page of a list, and where the next one begins; null: it is the last. Throws as `answerOf` does. */
export async function pageOf<T>(
  call: Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>,
): Promise<{ readonly page: T; readonly next: string | null }> {
  const { response } = await call;
  return { page: await answerOf(call), next: response.headers.get("x-next-cursor") };
}
