// The HTTP application for other nodes, on a port of its own: requests that they pass on, and queries about this node's
// publishes. Requests from anybody else are refused.
import { Hono } from "hono";
import type { Logger } from "pino";
import { CALL_HEADER, CallVerifier } from "../../cluster/signature.ts";
import { BODY_LIMIT_BYTES, outgoingOf, type PassedOn } from "../request/request.ts";
import { clientOf, PASSED_ON, requestIdOf } from "./forwarding.ts";

export interface NodeAppDeps {
  /** Serves a request that another node passed on. */
  readonly serve: (
    request: Request,
    env: { readonly passedOn: PassedOn; readonly outgoing: unknown },
  ) => Response | Promise<Response>;
  /** The secret that the nodes share. */
  readonly key: Uint8Array;
  /** On the store's clock. */
  readonly clock: { now(): number };
  readonly log: Logger;
  /** Queries of other nodes, by path: the response as JSON. */
  readonly questions: Readonly<Record<string, (asked: URLSearchParams) => unknown>>;
}

export function nodeApp({ serve, key, clock, log, questions }: NodeAppDeps): Hono {
  const verifier = new CallVerifier(key);
  const app = new Hono();
  app.all("*", async (c) => {
    const length = Number(c.req.header("content-length") ?? 0);
    if (!(length <= BODY_LIMIT_BYTES) || c.req.header("transfer-encoding") !== undefined) return c.body(null, 413);
    const body = new Uint8Array(await c.req.arrayBuffer());
    const url = new URL(c.req.url);
    const call = { method: c.req.method, target: url.pathname + url.search, body, client: clientOf(c) };
    if (!verifier.holds(c.req.header(CALL_HEADER), call, clock.now())) {
      log.warn({ path: url.pathname }, "a call to the node's port was not signed by a node of this service");
      return c.body(null, 403);
    }
    if (url.pathname.startsWith(`${PASSED_ON}/`)) {
      const headers = new Headers(c.req.raw.headers);
      headers.delete(CALL_HEADER);
      const target = url.origin + url.pathname.slice(PASSED_ON.length) + url.search;
      const request = new Request(target, { method: c.req.method, headers, body: body.length === 0 ? null : body });
      const passedOn = { client: clientOf(c), requestId: requestIdOf(c) };
      return await serve(request, { passedOn, outgoing: outgoingOf(c) });
    }
    const answer = Object.hasOwn(questions, url.pathname) ? questions[url.pathname] : undefined;
    return answer === undefined ? c.body(null, 404) : c.json((await answer(url.searchParams)) as object);
  });
  app.onError((err, c) => {
    log.error({ err }, "a call of another node failed");
    return c.body(null, 500);
  });
  return app;
}
