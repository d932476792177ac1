// The parts of the OpenAPI document that are not routes: its head, the security schemes, and the webhook calls that the
// customer receives (W1–W18). WHIP is in whip-document.ts.
import { OpenAPIHono, type RouteConfig } from "@hono/zod-openapi";
import { API_KEY_HEADER } from "../api-key-headers.ts";
import { API_KEY_SCHEME, type Describe, type Registry, SESSION_SCHEME, z } from "./openapi.ts";
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
  const document = described.getOpenAPI31Document({
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
  describeWarnings(document as unknown as Document);
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
