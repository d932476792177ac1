// The HTTP application: routes, limits, the headers of every response, and the one error handler. It listens nowhere.
import { randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { methodNotAllowed } from "hono/method-not-allowed";
import { routePath } from "hono/route";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import {
  answerOf,
  BodyTooLarge,
  type ErrorFamily,
  type HttpError,
  InternalError,
  isHttpError,
  MethodNotAllowed,
  UnknownAddress,
} from "./errors.ts";
import { jwksRoutes } from "./http/jwks.ts";
import { type CheckWebhookUrl, organisationRoutes } from "./http/organisation.ts";
import { streamRoutes } from "./http/stream.ts";
import { webcasterRoutes } from "./http/webcaster.ts";
import { whipRoutes } from "./http/whip.ts";
import { whipSessionRoutes } from "./http/whip-session.ts";
import type { Metrics } from "./metrics.ts";
import { createApiKeys } from "./organisation/api-keys.ts";
import { problemResponse, WHIP_PATH, WhipProblem } from "./problems.ts";
import type { Whip } from "./publish/whip.ts";
import { BODY_LIMIT_BYTES } from "./request.ts";
import type { Schema } from "./store/schema.ts";
import type { Tokens } from "./token/tokens.ts";

/** Everything the application stands on. */
export interface AppDeps {
  readonly db: Kysely<Schema>;
  readonly config: Pick<Config, "dev" | "http" | "ingest" | "whip">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly tokens: Tokens;
  readonly metrics: Metrics;
  readonly checkWebhookUrl: CheckWebhookUrl;
  readonly whip: Whip;
  /** Of this gateway. */
  readonly version: string;
  /** The port RTMP is served on. */
  readonly rtmpPort: number;
}

type Env = { Variables: { requestId: string } };

export function createApp(deps: AppDeps): Hono<Env> {
  const { log, metrics } = deps;
  const app = new Hono<Env>();

  app.use(async (c, next) => {
    const startedAt = performance.now(); // a duration, not the time of day
    const requestId = randomUUID();
    c.set("requestId", requestId);
    await next();
    c.res.headers.set("x-api-version", "1"); // §7
    c.res.headers.set("x-request-id", requestId);
    if (c.res.headers.get("content-type") === "application/json") {
      c.res.headers.set("content-type", "application/json; charset=utf-8"); // M2
    }
    const { method } = c.req;
    const { status } = c.res;
    const route = routePath(c, -1);
    const tookMs = performance.now() - startedAt;
    metrics.observeRequest({ method, route, status, tookMs });
    log.debug({ requestId, method, route, status, tookMs: Math.round(tookMs) }, "request answered");
  });
  app.use(methodNotAllowed({ app, onMethodNotAllowed: (c, allow) => answer(c, new MethodNotAllowed(allow)) }));
  const bounded = bodyLimit({
    maxSize: BODY_LIMIT_BYTES,
    onError: () => {
      throw new BodyTooLarge(`over ${BODY_LIMIT_BYTES} bytes`);
    },
  });
  // PATCH looks for its session first and then bounds the body itself (P8).
  app.use((c, next) => (c.req.method === "PATCH" && isWhip(c.req.path) ? next() : bounded(c, next)));

  const apiKeys = createApiKeys(deps);
  app.route("/", organisationRoutes({ ...deps, apiKeys }));
  app.route("/", streamRoutes({ ...deps, apiKeys }));
  app.route("/", webcasterRoutes({ ...deps, apiKeys }));
  app.route("/", jwksRoutes(deps));
  app.route("/", whipRoutes(deps));
  app.route("/", whipSessionRoutes(deps));

  app.notFound((c) => answer(c, new UnknownAddress()));
  app.onError((error, c) => {
    const known =
      error instanceof WhipProblem || isHttpError(error) ? error : new InternalError("unforeseen", { cause: error });
    const response = answer(c, known);
    if (response.status >= 500) log.error({ err: error, requestId: c.get("requestId") }, "request failed");
    return response;
  });
  return app;
}

function answer(c: Context, error: HttpError | WhipProblem): Response {
  if (error instanceof WhipProblem || isWhip(c.req.path)) return problemResponse(error);
  const { status, body } = answerOf(error, familyOf(c.req.path));
  if (error instanceof MethodNotAllowed) c.header("allow", error.allow.join(", "));
  return c.json(body, status);
}

function isWhip(path: string): boolean {
  return path === WHIP_PATH || path.startsWith(`${WHIP_PATH}/`);
}

/** Which shape of error an address speaks. */
function familyOf(path: string): ErrorFamily {
  return path === "/webcaster" || path.startsWith("/webcaster/") ? "token" : "management";
}
