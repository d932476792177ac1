// The HTTP application: routes, limits, the headers of every response, and the one error handler. It opens no port.
import { type Context, Hono } from "hono";
import { methodNotAllowed } from "hono/method-not-allowed";
import { getPath } from "hono/utils/url";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { DeploymentNode } from "./cluster/node-list.ts";
import type { Config } from "./config.ts";
import { type HttpError, InternalError, MethodNotAllowed, UnknownAddress } from "./errors.ts";
import { AUDIT_ROUTES, auditRoutes } from "./http/audit.ts";
import { type Elsewhere, forwarding, placement } from "./http/cluster/forwarding.ts";
import type { Others } from "./http/cluster/others.ts";
import { describeTheRest, describing, documentOf } from "./http/document.ts";
import { answerOf, isHttpError } from "./http/error-answers.ts";
import type { ErrorFamily } from "./http/error-codes.ts";
import { GUIDE_ROUTES, guideRoutes } from "./http/guide/guide-routes.ts";
import { PASSWORD_LINK_ROUTES, passwordLinkRoutes } from "./http/identity/password-link-routes.ts";
import { IDENTITY_PROVIDER_ROUTES, identityProviderRoutes } from "./http/identity/provider-routes.ts";
import { signInRoutes } from "./http/identity/sign-in-routes.ts";
import { JWKS_ROUTES, jwksRoutes } from "./http/jwks.ts";
import { KEY_ROUTES, keyRoutes } from "./http/keys.ts";
import { LOGIN_ROUTES, loginRoutes } from "./http/login.ts";
import { LOGO_ROUTES, logoRoutes } from "./http/logo/logo-routes.ts";
import { CAPTURE_ROUTES, captureRoutes } from "./http/monitoring/capture-routes.ts";
import { DEPLOYMENT_ROUTES, deploymentRoutes } from "./http/monitoring/deployment-routes.ts";
import { EVENT_ROUTES, eventRoutes } from "./http/monitoring/event-routes.ts";
import type { Events } from "./http/monitoring/events.ts";
import { REFUSAL_ROUTES, refusalRoutes } from "./http/monitoring/refusal-routes.ts";
import { STATUS_ROUTES, statusRoutes } from "./http/monitoring/status-routes.ts";
import { TIMELINE_ROUTES, timelineRoutes } from "./http/monitoring/timeline-routes.ts";
import type { Describe, Env, Forward } from "./http/openapi.ts";
import { ORGANISATION_ROUTES, organisationRoutes } from "./http/organisation.ts";
import { BROADCAST_ROUTES, broadcastRoutes } from "./http/pages/broadcast.ts";
import { DASHBOARD_ROUTES, dashboardRoutes } from "./http/pages/dashboard.ts";
import { DOCS_ROUTES, docsRoutes } from "./http/pages/docs.ts";
import { PREVIEW_ROUTES, previewRoutes } from "./http/pages/preview.ts";
import { SDK_ROUTES, sdkRoutes } from "./http/pages/sdk.ts";
import { PUBLISH_ROUTES, publishRoutes } from "./http/publishes.ts";
import { envelope } from "./http/request/envelope.ts";
import type { IngestPorts } from "./http/request/ingest.ts";
import { personLimit, rateLimit } from "./http/request/rate-limit.ts";
import { boundedBody, clientAddresses, hasLeft, readApiKey } from "./http/request/request.ts";
import { SESSION_ROUTES, sessionRoutes } from "./http/sessions.ts";
import { STREAM_ROUTES, streamRoutes } from "./http/stream.ts";
import { STREAM_CONTROL_ROUTES, streamControlRoutes } from "./http/stream-control.ts";
import { STREAM_KEY_ROUTES, streamKeyRoutes } from "./http/stream-key/key-routes.ts";
import { STREAM_TITLE_ROUTES, streamTitleRoutes } from "./http/stream-title/title-routes.ts";
import { TOKEN_LIST_ROUTES, tokenListRoutes } from "./http/token/token-list.ts";
import { TOKEN_ROUTES, tokenRoutes } from "./http/token/tokens.ts";
import { UPSTREAM_ORDER_ROUTES, upstreamOrderRoutes } from "./http/upstream/upstream-orders.ts";
import { type CheckUpstreamUrl, UPSTREAM_ROUTES, upstreamRoutes } from "./http/upstreams.ts";
import { USAGE_ROUTES, usageRoutes } from "./http/usage.ts";
import { USER_ROUTES, userRoutes } from "./http/users.ts";
import { v5Routes } from "./http/v5/v5-socket.ts";
import { WEBCASTER_ROUTES, webcasterRoutes } from "./http/webcaster.ts";
import { WEBHOOK_COPY_ROUTES, webhookCopyRoutes } from "./http/webhook-copy-routes.ts";
import { WEBHOOK_ROUTES, webhookRoutes } from "./http/webhook-routes.ts";
import { describeWhip } from "./http/whip/whip-document.ts";
import { whipRoutes } from "./http/whip/whip-endpoint.ts";
import { problemResponse, RETRY_AFTER_S, WHIP_PATH, WhipProblem } from "./http/whip/whip-problems.ts";
import { whipSessionRoutes } from "./http/whip/whip-session.ts";
import type { Metrics } from "./metrics.ts";
import { createApiKeys } from "./organisation/api-keys.ts";
import { createAuthorise } from "./organisation/callers.ts";
import type { Customers } from "./organisation/customers.ts";
import type { Fetch, Issuers } from "./organisation/identity/issuer.ts";
import { createPasswordLinks } from "./organisation/identity/password-links.ts";
import { createIdentityProviders } from "./organisation/identity/provider.ts";
import { IdentitySignIn } from "./organisation/identity/sign-in.ts";
import { createKeptAnswers } from "./organisation/kept-answers.ts";
import { createLoginThrottle } from "./organisation/login-throttle.ts";
import { createLogins } from "./organisation/logins.ts";
import { createReadLimits } from "./organisation/reads/read-limits.ts";
import type { StreamUpstreams } from "./organisation/upstreams.ts";
import type { WebhookSecrets } from "./organisation/webhook-secret.ts";
import type { CheckWebhookUrl } from "./publish/addresses/address-guard.ts";
import type { Captures } from "./publish/capture/captures.ts";
import type { PublishKeys } from "./publish/key/publish-key.ts";
import type { Publishing } from "./publish/lifecycle.ts";
import type { LiveSessions } from "./publish/live-sessions.ts";
import type { DeploymentStatus } from "./publish/monitoring/deployment.ts";
import type { Measurements } from "./publish/monitoring/measurements.ts";
import type { Previews } from "./publish/preview/previews.ts";
import type { Refusals } from "./publish/refusals/refusals.ts";
import type { Timelines } from "./publish/timeline/timelines.ts";
import type { Workbench } from "./publish/webhook/workbench.ts";
import type { Whip } from "./publish/whip/whip-publishes.ts";
import type { Schema } from "./store/schema.ts";
import type { SecretBox } from "./store/secret-box.ts";
import type { Revocations } from "./token/revocations.ts";
import type { TokenRecords } from "./token/token-records.ts";
import type { Tokens } from "./token/tokens.ts";

/** Dependencies of the application. */
export interface AppDeps {
  readonly db: Kysely<Schema>;
  /** The same store for reads that must not delay what `db` does. */
  readonly reads: Kysely<Schema>;
  readonly config: Pick<Config, "capacity" | "dev" | "http" | "ingest" | "limits" | "nameRandom" | "token" | "whip">;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly tokens: Tokens;
  readonly revocations?: Revocations;
  readonly tokenRecords: Pick<TokenRecords, "add" | "flush">;
  readonly metrics: Metrics;
  readonly checkWebhookUrl: CheckWebhookUrl;
  readonly checkUpstreamUrl: CheckUpstreamUrl;
  /** Requests to the identity providers of organisations. */
  readonly identityFetch: Fetch;
  readonly streamUpstreams: StreamUpstreams;
  readonly upstreamTests: Publishing["upstreamTests"];
  readonly secretBox: SecretBox;
  readonly sessions: LiveSessions;
  readonly previews: Previews;
  readonly captures: Captures;
  readonly runningPublish: Publishing["find"];
  readonly measurements: Measurements;
  readonly events: Events;
  readonly timelines: Timelines;
  /** Why this node takes no new publishes; null while it does. */
  readonly refusesPublishes: () => "draining" | "full" | null;
  readonly deployment: () => Promise<DeploymentStatus>;
  /** Every node; null while the store does not answer. */
  readonly nodes: () => Promise<readonly DeploymentNode[] | null>;
  readonly publishKeys: PublishKeys;
  readonly secrets: WebhookSecrets;
  readonly copySecrets: WebhookSecrets;
  readonly customers: Pick<Customers, "forget">;
  readonly workbench: Workbench;
  readonly whip: Whip;
  readonly refusals: Refusals;
  /** The connection to the other nodes, and queries of what runs there; null where there are none. */
  readonly elsewhere?: Elsewhere | null;
  readonly others?: Others | null;
  /** Of this gateway. */
  readonly version: string;
  /** The ports of RTMP and RTMPS. */
  readonly ingestPorts: () => IngestPorts;
}

/** The parts of the OpenAPI document, in its order. */
const DESCRIPTIONS: readonly Describe[] = [
  ...[
    ORGANISATION_ROUTES,
    WEBHOOK_ROUTES,
    WEBHOOK_COPY_ROUTES,
    STREAM_ROUTES,
    STREAM_CONTROL_ROUTES,
    STREAM_KEY_ROUTES,
    STREAM_TITLE_ROUTES,
    PUBLISH_ROUTES,
    REFUSAL_ROUTES,
    STATUS_ROUTES,
    SESSION_ROUTES,
    TIMELINE_ROUTES,
    CAPTURE_ROUTES,
    PREVIEW_ROUTES,
    EVENT_ROUTES,
    USER_ROUTES,
    KEY_ROUTES,
    AUDIT_ROUTES,
    USAGE_ROUTES,
    DEPLOYMENT_ROUTES,
    LOGIN_ROUTES,
    IDENTITY_PROVIDER_ROUTES,
    PASSWORD_LINK_ROUTES,
    UPSTREAM_ROUTES,
    UPSTREAM_ORDER_ROUTES,
    LOGO_ROUTES,
    WEBCASTER_ROUTES,
    TOKEN_ROUTES,
    TOKEN_LIST_ROUTES,
    JWKS_ROUTES,
    SDK_ROUTES,
    BROADCAST_ROUTES,
    DASHBOARD_ROUTES,
    GUIDE_ROUTES,
  ].map(describing),
  describeTheRest,
  describeWhip,
  describing(DOCS_ROUTES),
];

export function createApp(deps: AppDeps): Hono<Env> {
  const { log, metrics } = deps;
  const app = new Hono<Env>({ getPath: pathOf });

  const clientAddress = clientAddresses(deps.config.http.trustedProxies);
  app.use(envelope({ config: deps.config, log, metrics, clientAddress }));
  app.use(methodNotAllowed({ app, onMethodNotAllowed: (c, allow) => answer(c, new MethodNotAllowed(allow)) }));
  const bounded = boundedBody();
  // PATCH looks up its session first and then limits the body itself (P8).
  app.use((c, next) => (c.req.method === "PATCH" && isWhip(c.req.path) ? next() : bounded(c, next)));

  app.use(readApiKey(deps.config.http.apiKeyHeaders));
  app.use(rateLimit({ limits: deps.config.limits, clock: deps.clock, clientAddress }));

  const apiKeys = createApiKeys(deps);
  const throttle = createLoginThrottle(deps.clock);
  const logins = createLogins({ ...deps, throttle });
  const authorise = createAuthorise({ ...deps, apiKeys, logins });
  const readLimits = createReadLimits(performance);
  const forward: Forward = deps.elsewhere ? forwarding(deps.elsewhere, clientAddress) : () => (_c, next) => next();
  const access = {
    authorise,
    readLimits,
    forward,
    keptAnswers: createKeptAnswers(deps),
    countPerson: personLimit({ limits: deps.config.limits, clock: deps.clock }),
  };
  const reading = { ...deps, ...access, db: deps.reads };
  app.route("/", organisationRoutes({ ...deps, ...access }));
  app.route("/", webhookRoutes({ ...deps, ...access }));
  app.route("/", webhookCopyRoutes({ ...deps, ...access }));
  app.route("/", streamRoutes({ ...deps, ...access }));
  app.route("/", streamControlRoutes({ ...deps, ...access }));
  app.route("/", streamKeyRoutes({ ...deps, ...access }));
  app.route("/", streamTitleRoutes({ ...deps, ...access }));
  app.route("/", publishRoutes(reading));
  app.route("/", refusalRoutes(reading));
  app.route("/", statusRoutes(reading));
  app.route("/", sessionRoutes({ ...deps, ...access }));
  app.route("/", timelineRoutes(reading));
  app.route("/", captureRoutes({ ...deps, ...access }));
  app.route("/", previewRoutes({ ...deps, ...access }));
  app.route("/", eventRoutes(reading));
  app.route("/", userRoutes({ ...deps, ...access }));
  app.route("/", keyRoutes({ ...deps, ...access }));
  app.route("/", auditRoutes(reading));
  app.route("/", usageRoutes(reading));
  app.route("/", deploymentRoutes(reading));
  const identityProviders = createIdentityProviders(deps);
  let issuers: Promise<Issuers> | null = null;
  const openIssuers = () => (issuers ??= loadIssuers(deps));
  const identitySignIn = new IdentitySignIn({ ...deps, providers: identityProviders, openIssuers, logins, throttle });
  app.route("/", loginRoutes({ ...deps, ...access, logins, identitySignIn, clientAddress }));
  app.route("/", identityProviderRoutes({ ...deps, ...access, identityProviders }));
  app.route("/", signInRoutes({ ...deps, ...access, identitySignIn, clientAddress }));
  app.route("/", passwordLinkRoutes({ ...deps, ...access, passwordLinks: createPasswordLinks(deps) }));
  app.route("/", upstreamRoutes({ ...deps, ...access }));
  app.route("/", upstreamOrderRoutes({ ...deps, ...access }));
  app.route("/", logoRoutes({ ...deps, ...access }));
  app.route("/", webcasterRoutes({ ...deps, ...access, clientAddress }));
  app.route("/", tokenRoutes({ ...deps, ...access }));
  app.route("/", tokenListRoutes({ ...deps, ...access }));
  app.route("/", jwksRoutes({ ...deps, ...access }));
  const passing = deps.elsewhere ? { placement: placement(deps.elsewhere, clientAddress) } : {};
  app.route("/", whipRoutes({ ...deps, ...passing, clientAddress }));
  app.route("/", whipSessionRoutes({ ...deps, forward, clientAddress }));
  app.route("/", v5Routes({ ...deps, authorise, clientAddress }));
  app.route("/", sdkRoutes({ ...deps, ...access }));
  app.route("/", broadcastRoutes({ ...deps, ...access }));
  app.route("/", dashboardRoutes({ ...deps, ...access }));
  // Before the files of /docs, whose pattern also matches its path.
  app.route("/", guideRoutes({ ...deps, ...access }));
  let document: object | null = null;
  app.route("/", docsRoutes({ ...deps, ...access, document: () => (document ??= apiDocument(deps.version)) }));

  app.notFound((c) => answer(c, new UnknownAddress()));
  app.onError((error, c) => {
    // A failure after the client has disconnected is not an error of ours.
    if (hasLeft(c)) return c.body(null, 400);
    const known =
      error instanceof WhipProblem || isHttpError(error) ? error : new InternalError("unforeseen", { cause: error });
    const response = answer(c, known, deps.config.http.apiKeyHeaders);
    const requestId = c.get("requestId");
    if (response.status === 500) log.error({ err: error, requestId }, "request failed");
    // That the node is full is logged once, not for each refused request.
    if (response.status === 503 && known.code !== "full")
      log.warn({ reason: error.message, requestId }, "request cannot be served now");
    return response;
  });
  return app;
}

async function loadIssuers({ identityFetch: fetch, clock, config: { dev } }: AppDeps): Promise<Issuers> {
  const { createIssuers } = await import("./organisation/identity/issuer.ts");
  return createIssuers({ fetch, clock, dev });
}

/** The OpenAPI 3.1 document of the routes. */
export function apiDocument(version: string): object {
  return documentOf(DESCRIPTIONS, version);
}

function answer(c: Context, error: HttpError | WhipProblem, keyHeaders: readonly string[] = []): Response {
  if (error instanceof WhipProblem || isWhip(c.req.path)) return problemResponse(error);
  const { status, body } = answerOf(error, familyOf(c.req.path), keyHeaders);
  const retryAfterS = "retryAfterS" in error ? error.retryAfterS : status === 503 ? RETRY_AFTER_S : null;
  if (retryAfterS !== null) c.header("retry-after", String(retryAfterS));
  if (error instanceof MethodNotAllowed) c.header("allow", error.allow.join(", "));
  return c.json(body, status);
}

/** The path of a request; people and programs add a slash to the WHIP endpoint and to its sessions, which means the
 *  same. */
function pathOf(request: Request): string {
  const path = getPath(request);
  return isWhip(path) ? path.replace(/\/+$/, "") : path;
}

function isWhip(path: string): boolean {
  return path === WHIP_PATH || path.startsWith(`${WHIP_PATH}/`);
}

/** The error family of a path. */
function familyOf(path: string): ErrorFamily {
  return path === "/webcaster" || path.startsWith("/webcaster/") ? "token" : "management";
}
