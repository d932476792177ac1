// How a route is written: one declaration both serves it and describes it for OpenAPI 3.1; its caller is authorised by
// the row of roles.ts, its query and body are parsed by the schemas that describe them. Every http file may import this
// one.
import { type OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import { type Context, Hono } from "hono";
import type { Owned } from "../cluster/owners.ts";
import type { Actor } from "../organisation/audit.ts";
import type { Authorise, Caller } from "../organisation/callers.ts";
import type { KeptAnswers } from "../organisation/kept-answers.ts";
import type { ReadLimits } from "../organisation/reads/read-limits.ts";
import { type Action, ROUTES, type RouteName } from "../organisation/roles.ts";
import type { Ending } from "../publish/ending/ending.ts";
import { ROLES } from "../store/tables/roles.ts";
import type { Trace } from "../tracing/trace.ts";
import { codesInWords } from "./error-codes.ts";
import { loggedCaller, type notedForLog, noteForLog } from "./request/caller.ts";
import { answeredOnce, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_LIMIT } from "./request/once.ts";
import { readsStore } from "./request/reads-store.ts";
import { credentialsOf } from "./request/request.ts";
import { queryReader, readBody, unreadMembers } from "./request/schema.ts";
import { isWarned, withWarnings } from "./request/warnings.ts";

export { z };

/** Variables that the application sets on every request. */
export type Env = {
  Variables: {
    requestId: string;
    trace: Trace;
    apiKey: string | null;
    noted?: ReturnType<typeof notedForLog>;
    /** The publish that the request would end, on a node that does not answer. */
    away?: Owned;
    /** Who ends a publish by the request, for a node that carries it out later. */
    ending?: Ending;
  };
};

export interface RouteText<Query extends z.ZodObject = z.ZodObject, Body extends z.ZodObject = z.ZodObject> {
  /** A short summary for a list, and what a caller must know beyond the schemas. */
  readonly summary: string;
  readonly description?: string;
  /** The heading under which the route is listed. */
  readonly tag:
    | "Organisation"
    | "Streams"
    | "Sessions"
    | "Users"
    | "Keys"
    | "Tokens"
    | "People"
    | "Deployment"
    | "Documents";
  readonly query?: Query;
  /** JSON body, and whether a request must have one. */
  readonly body?: Body;
  readonly bodyRequired?: boolean;
  /** Schema of the JSON of the 200; null when the response is not JSON. */
  readonly answer: z.ZodType | null;
  /** Content type of an `answer` that is null. */
  readonly answerType?: string;
  /** Content type of the text returned instead when the request asks for it. */
  readonly alsoAnswers?: string;
  /** Meaning of the 302 that is returned instead, and where it leads. */
  readonly redirect?: string;
  /** Statuses of errors in addition to those that `guarded` and `open` add. */
  readonly errors?: readonly ErrorStatus[];
}

/** `GET /stream/{id}` → `/stream/:id`. */
type Path<Name extends string> = Name extends `${string} ${infer P}` ? HonoPath<P> : never;
type HonoPath<P extends string> = P extends `${infer Before}{${infer Param}}${infer After}`
  ? `${Before}:${Param}${HonoPath<After>}`
  : P;

/** A request parsed by the route's schemas. */
export interface Request<Query extends z.ZodObject, Body extends z.ZodObject> {
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
}

export interface Routes {
  readonly hono: Hono<Env>;
  /** A route that requires a caller, who is passed with the request. */
  guarded<Name extends RouteName, Query extends z.ZodObject, Body extends z.ZodObject>(
    name: Name,
    text: RouteText<Query, Body>,
    serve: (
      c: Context<Env, Path<Name>>,
      caller: Caller & Actor,
      request: Request<Query, Body>,
    ) => Response | Promise<Response>,
  ): void;
  /** A route for anyone. */
  open<Name extends RouteName, Query extends z.ZodObject, Body extends z.ZodObject>(
    name: Name,
    text: RouteText<Query, Body>,
    serve: (c: Context<Env, Path<Name>>, request: Request<Query, Body>) => Response | Promise<Response>,
  ): void;
}

/** The registry that the OpenAPI document is generated from. */
export type Registry = OpenAPIHono["openAPIRegistry"];

/** Adds its part to the OpenAPI document. Called only when the document is requested: serving needs none of it. */
export type Describe = (registry: Registry) => void;

/** Dependencies of every set of routes. */
export interface RouteDeps {
  readonly authorise: Authorise;
  readonly keptAnswers: KeptAnswers;
  /** Each route adds its own. */
  readonly descriptions: Describe[];
  readonly readLimits: ReadLimits;
  /** Counts a request of a person. Rejects with `TooManyRequests`. */
  readonly countPerson: (c: Context, personId: string) => Promise<void>;
}

/** An empty set of routes; mount its `hono` in the application. A guarded POST can be repeated safely (M17). */
export function newRoutes({ authorise, keptAnswers, descriptions, readLimits, countPerson }: RouteDeps): Routes {
  const hono = new Hono<Env>();
  return {
    hono,
    guarded(name, text, serve) {
      const action = ROUTES[name] as Action | "anyone";
      if (action === "anyone") throw new TypeError(`${name} has no action in roles.ts`);
      descriptions.push((registry) => registry.registerPath(descriptionOf(name, text, action)));
      const read = readerOf(text);
      hono.on(...placeOf(name), async (c) => {
        const credentials = credentialsOf(c);
        const caller = await authorise(credentials, action, (known) =>
          noteForLog(c, loggedCaller(known, credentials.sessionId)),
        );
        if (caller.who.kind === "user") await countPerson(c, caller.who.id);
        const request = await read(c);
        const answer = async () =>
          await withWarnings(
            await serve(c as never, { ...caller, requestId: c.get("requestId") }, request),
            request.unknown,
          );
        if (c.req.method === "POST") return await answeredOnce(c, keptAnswers, caller, answer);
        return readsStore(name) ? await readLimits.run(caller.organisation.id, answer) : await answer();
      });
    },
    open(name, text, serve) {
      if (ROUTES[name] !== "anyone") throw new TypeError(`${name} is not for anyone in roles.ts`);
      descriptions.push((registry) => registry.registerPath(descriptionOf(name, text, null)));
      const read = readerOf(text);
      hono.on(...placeOf(name), async (c) => {
        const request = await read(c);
        return await withWarnings(await serve(c as never, request), request.unknown);
      });
    },
  };
}

const NO_QUERY = z.object({});
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

/** The parser for requests of a route. */
function readerOf<Query extends z.ZodObject, Body extends z.ZodObject>({
  query,
  body,
}: RouteText<Query, Body>): (c: Context) => Promise<Request<Query, Body> & { readonly unknown: readonly string[] }> {
  const readQuery = queryReader(query ?? (NO_QUERY as unknown as Query));
  return async (c) => {
    const query = readQuery(c);
    if (body !== undefined) return { query, ...(await readBody(c, body)) };
    return { query, body: {} as z.output<Body>, unknown: isWarned(c.req.method) ? await unreadMembers(c) : [] };
  };
}

function descriptionOf(name: RouteName, text: RouteText, action: Action | null): RouteConfig {
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

/** Arguments for Hono's `on`. */
function placeOf(name: RouteName): [method: string, path: string] {
  const [method, path] = name.split(" ") as [string, string];
  return [method, path.replaceAll(/\{(\w+)\}/g, ":$1")];
}

// Shared schemas. Numbers and sentences that callers rely on are defined in api-decisions.

export type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 429 | 500 | 503;

/** Names of the security schemes. */
export const API_KEY_SCHEME = "apiKey";
export const SESSION_SCHEME = "session";

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

/** Error body of the management API (M2). */
export const ErrorBody = z
  .object({
    error: z.object({
      code: z.int().openapi({
        description: codesInWords("management"),
        example: 2001,
      }),
      message: z.string().openapi({ example: "Access denied" }),
      userinfo: z.record(z.string(), z.union([z.string(), z.number()])).openapi({
        description: "Details of the error: required_parameter, parameter and type, reason, required_role",
      }),
    }),
  })
  .openapi("ManagementError");

/** Error body of the token service (T2, T3). */
export const TokenErrorBody = z
  .object({
    success: z.literal(false),
    errorCode: z.int().openapi({ description: codesInWords("token"), example: 1000 }),
    message: z.string().openapi({ example: "Parameter required: streamname" }),
  })
  .openapi("TokenError");

function errorResponse(status: ErrorStatus, path: string) {
  const schema = path.startsWith("/webcaster") ? TokenErrorBody : ErrorBody;
  return { description: ERROR_TEXTS[status], content: { "application/json": { schema } } };
}

/** A time in a record: RFC 3339, UTC, milliseconds. */
export const Time = z.iso.datetime().openapi({ example: "2026-01-01T00:00:00.000Z" });

/** A time in a request for a token (T1): integer Unix seconds. */
export const UnixTime = z
  .number()
  .refine((given) => Number.isSafeInteger(given) && given >= 0, { params: { type: "integer" } })
  .nullable()
  .optional()
  .openapi({
    type: ["integer", "null"],
    description: "Unix time, seconds",
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    example: 1_798_761_600,
  });

/** The organisation record (M7). */
export const Organisation = z
  .object({
    id: z.uuid(),
    hash: z.string().openapi({ description: "First part of every stream name", example: "Ab1Cd" }),
    name: z.string(),
    webhook: z.string().nullable().openapi({ example: "https://customer.example/publish" }),
    webhook_secret_set: z.boolean(),
    plan: z.enum(["trial", "paid"]),
    limits: z
      .object({
        streams: z.int().openapi({ description: "Streams that may be live at the same time" }),
        ingest_kbps: z
          .int()
          .openapi({ description: "Total bitrate, kbit/s, above which no further publish may begin" }),
        setups_per_second: z
          .int()
          .openapi({ description: "Publish requests per second; bursts of three seconds' worth are allowed" }),
      })
      .openapi({ description: "Limits of the organisation, set by the operator; 0 means no limit" }),
    created_at: Time,
    updated_at: Time,
  })
  .openapi("Organisation");

export const Role = z.enum(ROLES).openapi("Role");
