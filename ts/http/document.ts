// The OpenAPI document: the routes from their declarations, its head, the security schemes, and the webhook calls that
// the customer receives (W1–W18). WHIP is in whip-document.ts.
import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { API_KEY_HEADER } from "../api-key-headers.ts";
import { type Action, ROUTES, type RouteName } from "../organisation/roles.ts";
import {
  API_KEY_SCHEME,
  type Declarations,
  type Describe,
  ErrorBody,
  type ErrorStatus,
  type Registry,
  type RouteText,
  SESSION_SCHEME,
  TokenErrorBody,
  z,
} from "./openapi.ts";
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_LIMIT } from "./request/once.ts";
import { isWarned, WARNINGS } from "./request/warnings.ts";

const HEAD = {
  title: "Headgate",
  summary: "Live ingest: RTMP and WHIP in, your webhook decides, RTMP out",
  description:
    "Management API, web tokens and WHIP of one Headgate. Every response carries `x-api-version: 1` and `x-request-id`; " +
    "new versions only add to the API. Every success is 200 with a JSON body. Requests are rate-limited per key: see `429`.",
};

/** Contact for support; the address is not known here. */
const CONTACT = { name: "The operator of this Headgate" };

const SCHEMAS = "#/components/schemas/";

/** The OpenAPI 3.1 document of everything described, without `servers`. */
export function documentOf(descriptions: readonly Describe[], version: string): object {
  const described = new OpenAPIHono();
  for (const describe of descriptions) describe(described.openAPIRegistry);
  const document: object = described.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      ...HEAD,
      version,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      contact: CONTACT,
    },
    tags: [
      { name: "Organisation", description: "The tenant: its webhook and settings" },
      { name: "Streams", description: "Named places to publish to" },
      { name: "Sessions", description: "Running publishes" },
      { name: "Users", description: "People of the organisation" },
      { name: "Keys", description: "API keys" },
      { name: "Tokens", description: "Web tokens for browser broadcasters" },
      { name: "People", description: "Sign in and out" },
      { name: "Deployment", description: "The whole service, for its operator" },
      { name: "WHIP", description: "WebRTC ingest (RFC 9725)" },
      { name: "Documents", description: "This document, and pages that show it" },
    ],
  });
  describeWarnings(document as Document);
  return document;
}

interface Described {
  readonly $ref?: string;
  readonly properties?: Record<string, object>;
}
interface Operation {
  /** A body with `additionalProperties: false` is refused instead. */
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: { readonly additionalProperties?: boolean } }>>;
  };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Described }>> }>
  >;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Record<string, Described | typeof WARNINGS> };
}

/** Adds `warnings` to the records themselves: generated clients keep the types they have. */
function describeWarnings({ paths, components: { schemas } }: Document): void {
  for (const [method, { requestBody, responses }] of Object.values(paths).flatMap((methods) =>
    Object.entries(methods),
  )) {
    const answer = responses["200"]?.content?.["application/json"]?.schema;
    const isStrict = requestBody?.content["application/json"]?.schema.additionalProperties === false;
    if (answer === undefined || isStrict || !isWarned(method.toUpperCase())) continue;
    const record = answer.$ref === undefined ? answer : schemas[answer.$ref.slice(SCHEMAS.length)];
    if (record !== undefined && "properties" in record && record.properties !== undefined)
      record.properties["warnings"] = { $ref: `${SCHEMAS}Warnings` };
  }
  schemas["Warnings"] = WARNINGS;
}

/** The part of the document about the routes of a file. */
export function describing(declared: Declarations): Describe {
  return (registry) => {
    for (const [name, text] of Object.entries(declared)) registry.registerPath(descriptionOf(name as RouteName, text));
  };
}

const BINARY = z.string().openapi({ format: "binary" });
const NEXT_PAGE = z.object({
  "x-next-cursor": z
    .string()
    .optional()
    .openapi({ description: "The cursor of the next page; absent on the last one", example: "WyJzdHJlYW0iLFsxXV0" }),
  Link: z
    .string()
    .optional()
    .openapi({ description: "The next page", example: '</stream?cursor=WyJzdHJlYW0iLFsxXV0>; rel="next"' }),
});
const REPEATABLE = z.object({
  [IDEMPOTENCY_KEY]: z
    .string()
    .min(1)
    .max(IDEMPOTENCY_KEY_LIMIT)
    .optional()
    .openapi({
      description:
        "Repeating a request with the same key within 24 hours returns the first response; a different request with it " +
        "is refused: 409 with code 9409. While the first request is running: 409 with code 9410 and Retry-After",
      example: "2f1d1f6e-8f3a-4b0e-9f0e-4a5a0c8b7d11",
    }),
});

function descriptionOf(name: RouteName, text: RouteText): RouteConfig {
  const required: Action | "anyone" = ROUTES[name];
  const action = required === "anyone" ? null : required;
  const [method, path] = name.split(" ") as [string, string];
  const {
    summary,
    description,
    tag,
    query,
    body,
    bodyRequired = false,
    answer,
    answerType = "text/html",
    alsoAnswers,
    redirect,
  } = text;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => param as string);
  const params = z.object(Object.fromEntries(names.map((param) => [param, pathParameter(param, path)])));
  const errors = new Set<ErrorStatus>([...(text.errors ?? []), 400, 429, 500, 503]);
  if (body !== undefined) errors.add(413);
  if (action !== null) errors.add(403);
  const isRepeatable = action !== null && method === "POST";
  if (isRepeatable) errors.add(409);
  const audited = action === null ? "" : `Action \`${action}\`.`;
  return {
    method: method.toLowerCase() as RouteConfig["method"],
    path,
    operationId: operationId(method, path),
    summary,
    description: [description, audited].filter(Boolean).join("\n\n"),
    tags: [tag],
    security: action === null ? [] : [{ [API_KEY_SCHEME]: [] }, { [SESSION_SCHEME]: [] }],
    request: {
      ...(names.length > 0 ? { params } : {}),
      ...(query === undefined ? {} : { query }),
      ...(isRepeatable ? { headers: REPEATABLE } : {}),
      ...(body === undefined
        ? {}
        : { body: { required: bodyRequired, content: { "application/json": { schema: body } } } }),
    },
    responses: {
      200: {
        description: "Done",
        ...(query !== undefined && "cursor" in query.shape ? { headers: NEXT_PAGE } : {}),
        content: {
          ...(answer === null
            ? { [answerType]: { schema: answerType.startsWith("text/") ? z.string() : BINARY } }
            : { "application/json": { schema: answer } }),
          ...(alsoAnswers === undefined ? {} : { [alsoAnswers]: { schema: z.string() } }),
        },
      },
      ...(redirect === undefined ? {} : { 302: { description: redirect } }),
      ...Object.fromEntries([...errors].sort().map((status) => [status, errorResponse(status, path)])),
    },
  };
}

/** An id has the same type everywhere. */
function pathParameter(name: string, path: string): z.ZodType {
  if (name === "client_id") return z.int().openapi({ description: "As returned by GET /session", example: 100_482 });
  const description =
    name === "file"
      ? path.startsWith("/live/")
        ? "Id of the stream and `.flv`"
        : "Name of a file"
      : `The id, as returned by GET ${path.slice(0, path.indexOf("/{"))}`;
  return UUID_NAMED.test(path) ? z.uuid().openapi({ description }) : z.string().openapi({ description });
}

/** Routes whose ids are UUIDs, as in their records; any other value is the id of nothing. */
const UUID_NAMED = /^\/(stream|organisation\/user)\/\{id\}/;

/** `GET /stream/{id}` → getStreamById. */
function operationId(method: string, path: string): string {
  const words = path.split(/[/.-]/).filter(Boolean);
  const word = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
  const camel = words.map((text) =>
    text.startsWith("{") ? `By${word(text.slice(1, -1).replace("_", ""))}` : word(text),
  );
  return method.toLowerCase() + camel.join("");
}

const ERROR_TEXTS: Readonly<Record<ErrorStatus, string>> = {
  400: "The request is invalid; the code says why",
  401: "Wrong credentials",
  403: "API key missing or wrong (the same answer for both), role not sufficient, or organisation not enabled",
  404: "Not found in this organisation",
  405: "The address does not support this method: see the Allow header",
  409: "The current state does not allow this request",
  413: "The body is larger than 64 KiB",
  429: "Too many requests: see the Retry-After header",
  500: "Internal error, logged under the x-request-id",
  503: "Temporarily unavailable: try again in a moment",
};

function errorResponse(status: ErrorStatus, path: string) {
  const schema = path.startsWith("/webcaster") ? TokenErrorBody : ErrorBody;
  return { description: ERROR_TEXTS[status], content: { "application/json": { schema } } };
}

/** Adds the parts that no route describes. */
export function describeTheRest(registry: Registry): void {
  registry.registerComponent("securitySchemes", API_KEY_SCHEME, {
    type: "apiKey",
    in: "header",
    name: API_KEY_HEADER,
    description:
      "An API key of the organisation. The operator may have configured further names for this header; two different " +
      "keys in one request are refused. Missing or wrong: 403, code 2001.",
  });
  registry.registerComponent("securitySchemes", SESSION_SCHEME, {
    type: "apiKey",
    in: "cookie",
    name: "__Host-headgate",
    description:
      "The session cookie of a signed-in person. Requests that change something also need the header `x-csrf-token`.",
  });
  for (const call of webhookCalls()) registry.registerWebhook(call);
}

const common = {
  name: z.string().openapi({ description: "Stream name", example: "Ab1Cd-9XyZ0" }),
  app: z.string().openapi({ example: "live" }),
  addr: z.string().openapi({ description: "IP address of the broadcaster", example: "203.0.113.7" }),
  clientid: z.string().openapi({ description: "Decimal, the same in all events of one publish", example: "100482" }),
};
const decimal = (description: string) => z.string().regex(/^\d+$/).openapi({ description });

function webhookCalls(): RouteConfig[] {
  const call = (name: string, summary: string, description: string, fields: z.ZodRawShape): RouteConfig => ({
    method: "post",
    path: name,
    operationId: `webhook_${name}`,
    summary,
    description: `${description} The custom arguments of the broadcaster come first in the body, byte for byte as they were given.`,
    security: [],
    request: {
      headers: z.object({
        "webhook-id": z.string().openapi({ description: "The same for every retry (Standard Webhooks 1.0)" }),
        "webhook-timestamp": z.string(),
        "webhook-signature": z.string().openapi({
          description: "`v1,` and an HMAC-SHA256 in base64; two signatures while the secret is being rotated",
        }),
        traceparent: z.string().openapi({ description: "W3C Trace Context: one trace for all calls about a publish" }),
        tracestate: z.string().optional(),
      }),
      body: {
        required: true,
        content: { "application/x-www-form-urlencoded": { schema: z.object({ call: z.literal(name), ...fields }) } },
      },
    },
    responses: { 200: { description: "Allowed" }, 403: { description: "Denied, as by every status other than 200" } },
  });
  return [
    call(
      "publish",
      "May this broadcaster publish?",
      "Asked before any media flows. Answer within 5 s, ideally within 100 ms.",
      common,
    ),
    call(
      "update_publish",
      "A publish is running",
      "Every 30 s. Answers other than 200 end the publish: a 403 immediately, others after `update_reject_after` in a row.",
      {
        time: decimal("Whole seconds since the publish was accepted"),
        timestamp: decimal("Timestamp of the newest packet, ms"),
        ...common,
      },
    ),
    call("publish_done", "A publish has ended", "Once for each accepted publish, delivered at least once.", {
      ...common,
      bytes_in: decimal("Audio and video bytes received from the encoder"),
      bytes_out: decimal("Audio and video bytes sent to upstreams and players, counted the same way"),
    }),
  ];
}
