// A client of the management API for TypeScript: every call, parameter and answer is typed by what the routes say of
// themselves. It stands on fetch alone, so it runs in Node, in browsers and in workers.
import createClient, { type Client } from "openapi-fetch";
import { HeadgateError } from "./error.ts";
import type { components, paths } from "./paths.d.ts";
import { type Fetch, RETRIES_DEFAULT, retryingFetch } from "./retry.ts";

export { type ErrorKind, HeadgateError, isHeadgateError } from "./error.ts";

/** Records of the API by their names, e.g. `Records["Stream"]`. */
export type Records = components["schemas"];

export interface HeadgateOptions {
  /** `https://headgate.example`, without a path. */
  readonly baseUrl: string;
  /** An API key; it belongs on servers, never in a page. */
  readonly apiKey: string;
  /** Another fetch than the one of the platform. */
  readonly fetch?: Fetch;
  /** How often a request without an answer, or one that came too early, is sent again; 2 unless said. A POST carries an
   *  Idempotency-Key, so that it is done once. */
  readonly retries?: number;
}

/** Calls like `client.GET("/stream/{id}", { params: { path: { id } } })`; each gives `data` or `error`, and `response`. */
export type HeadgateClient = Client<paths, "application/json">;

export function createHeadgateClient({ baseUrl, apiKey, fetch, retries }: HeadgateOptions): HeadgateClient {
  const send: Fetch = fetch ?? ((request) => globalThis.fetch(request));
  return createClient<paths, "application/json">({
    baseUrl: baseUrl.replace(/\/+$/, ""),
    headers: { "x-service-apikey": apiKey },
    fetch: retryingFetch(send, retries ?? RETRIES_DEFAULT),
  });
}

/** The answer of a call, or a `HeadgateError`: `const stream = await answerOf(client.POST("/stream"))`. */
export async function answerOf<T>(
  call: Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>,
): Promise<T> {
  const { data, error, response } = await call;
  if (error !== undefined || data === undefined) throw new HeadgateError(response, error);
  return data;
}

/** The query of one page of a list. */
export interface PageQuery {
  readonly cursor?: string;
}

/** Every entry of a list, page after page:
 *  `for await (const stream of everyOf((page) => client.GET("/stream", { params: { query: page } })))`. */
export async function* everyOf<T>(
  pageOf: (
    page: PageQuery,
  ) => Promise<{ readonly data?: readonly T[]; readonly error?: unknown; readonly response: Response }>,
): AsyncGenerator<T, void, undefined> {
  for (let page: PageQuery | null = {}; page !== null; ) {
    const call = await pageOf(page);
    yield* await answerOf(Promise.resolve(call));
    const cursor: string | null = call.response.headers.get("x-next-cursor");
    page = cursor === null ? null : { cursor };
  }
}
