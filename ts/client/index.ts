// A client of the management API for TypeScript: every call, parameter and response is typed by the OpenAPI
// description. It needs only fetch, so it runs in Node, in browsers and in workers.
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
  /** A fetch to use instead of the platform's. */
  readonly fetch?: Fetch;
  /** How often a request is sent again that got no response, or came too early; 2 by default. A POST carries an
   *  Idempotency-Key, so that it is carried out once. */
  readonly retries?: number;
}

/** Calls like `client.GET("/stream/{id}", { params: { path: { id } } })`; each gives `data` or `error`, and `response`. */
export type HeadgateClient = Client<paths, "application/json">;

export function createHeadgateClient({ baseUrl, apiKey, fetch, retries }: HeadgateOptions): HeadgateClient {
  // A redirect may lead to another host, which must not receive the key.
  const send: Fetch = fetch ?? ((request) => globalThis.fetch(request, { redirect: "manual" }));
  return createClient<paths, "application/json">({
    baseUrl: baseUrl.replace(/\/+$/, ""),
    headers: { "x-service-apikey": apiKey },
    fetch: retryingFetch(send, retries ?? RETRIES_DEFAULT),
  });
}

/** The data of a response; throws a `HeadgateError` for an error: `const stream = await
 *  answerOf(client.POST("/stream"))`. */
export async function answerOf<T>(
  call: Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>,
): Promise<T> {
  const { data, error, response } = await call;
  if (error !== undefined || data === undefined) throw new HeadgateError(response, error);
  return data;
}

/** The query for one page of a list. */
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
