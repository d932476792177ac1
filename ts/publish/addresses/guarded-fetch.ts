// Requests to servers that an organisation names, other than its webhook: every address checked by the guard, a deadline
// for the whole exchange, a limit for the body. Redirects are not followed. Each request has a connection of its own.
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import { Agent, buildConnector, request } from "undici/index.js";
import { guardConnector, guardedLookup } from "./address-guard.ts";
import type { Resolve } from "./resolver.ts";

/** Limit for everything together: name, connection, TLS, request, body, ms. */
const EXCHANGE_LIMIT_MS = 5_000;
/** Largest body, bytes: the keys of a large provider take some 20 kB. */
const BODY_LIMIT_BYTES = 262_144;
const HEAD_LIMIT_BYTES = 32_768;
/** Responses with these statuses have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

export interface GuardedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Sends a request for an organisation, whose look-up limit applies. Rejects when there is no complete response in time. */
export type GuardedFetch = (owner: string, url: string, request: GuardedRequest) => Promise<Response>;

/** `ca`: PEM certificates trusted in addition to the public ones, or null. `dev` allows private addresses. `limitMs`: of
 *  each exchange. */
export function createGuardedFetch(options: {
  readonly ca: string | null;
  readonly dev: boolean;
  readonly resolve: Resolve;
  readonly limitMs?: number;
}): GuardedFetch {
  const { limitMs = EXCHANGE_LIMIT_MS } = options;
  let context: SecureContext | null = null; // parsing the public roots takes 40 ms

  return async (owner, url, { method, headers, body }) => {
    context ??= createSecureContext(options.ca === null ? {} : { ca: [...rootCertificates, options.ca] });
    const plain = buildConnector({
      timeout: limitMs,
      secureContext: context,
      lookup: guardedLookup({ ...options, owner }),
    });
    const dispatcher = new Agent({
      connect: options.dev ? plain : guardConnector(plain),
      pipelining: 0,
      maxHeaderSize: HEAD_LIMIT_BYTES,
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms`)), limitMs);
    });
    try {
      return await Promise.race([exchange(), late]);
    } finally {
      clearTimeout(timer);
      await dispatcher.destroy();
    }

    async function exchange(): Promise<Response> {
      const answer = await request(url, { method: method as "GET", headers: { ...headers }, body, dispatcher });
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
        bytes += chunk.byteLength;
        if (bytes > BODY_LIMIT_BYTES) throw new Error(`the answer is longer than ${BODY_LIMIT_BYTES} bytes`);
        chunks.push(chunk);
      }
      const type = answer.headers["content-type"];
      return new Response(WITHOUT_BODY.has(answer.statusCode) ? null : Buffer.concat(chunks), {
        status: answer.statusCode,
        headers: typeof type === "string" ? { "content-type": type } : {},
      });
    }
  };
}
