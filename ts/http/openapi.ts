// How a route is written: its declaration describes it (document.ts) and says which node serves it; its caller is
// authorised by the row of roles.ts, its query and body are parsed by the schemas that describe them. Every http file
// may import this one.
import { type OpenAPIHono, z } from "@hono/zod-openapi";
import { type Context, Hono, type MiddlewareHandler } from "hono";
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
import { answeredOnce } from "./request/once.ts";
import { readsStore } from "./request/reads-store.ts";
import { credentialsOf } from "./request/request.ts";
import { bodyMember, queryReader, readBody, unreadMembers } from "./request/schema.ts";
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
  /** Statuses of errors in addition to those that every route has. */
  readonly errors?: readonly ErrorStatus[];
  /** Whose running publish the request is about: only the node that has it can serve the request. Absent: it is about
   *  the organisation, and every node serves it. */
  readonly about?: About;
  /** It ends the publish: recorded for a node that does not answer, and carried out as far as the store is concerned. */
  readonly ends?: true;
  /** It changes the upstreams of the stream, which the running publish follows. */
  readonly changesUpstreams?: true;
  /** The response lasts as long as somebody reads it. */
  readonly long?: true;
  /** How long the node that has the publish may take to answer, ms; by default as for every question between nodes. */
  readonly answersWithinMs?: number;
}

/** A WHIP session, the publish of a client id, or that of a stream. */
export type About = "session" | "client" | "stream";

/** The declarations of a file's routes. They are values of their own, so that the document needs no service. */
export type Declarations = { readonly [Name in RouteName]?: RouteText };

/** Where the requests of a route about a running publish are served. */
export interface Destination {
  readonly about: About;
  readonly ends: boolean;
  readonly changesUpstreams?: boolean;
  readonly long: boolean;
  readonly answersWithinMs?: number | undefined;
  /** The id of what a request is about; null when it names none. */
  readonly idOf: (c: Context) => Promise<string | null>;
}

/** Serves a request on the node that has its publish. */
export type Forward = (destination: Destination) => MiddlewareHandler;

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

type QueryOf<Text> = Text extends { readonly query: infer Query extends z.ZodObject } ? Query : z.ZodObject;
type BodyOf<Text> = Text extends { readonly body: infer Body extends z.ZodObject } ? Body : z.ZodObject;
type RequestOf<Text> = Request<QueryOf<Text>, BodyOf<Text>>;

/** The routes of `Declared`. */
export interface Routes<Declared extends Declarations = Declarations> {
  readonly hono: Hono<Env>;
  /** A route that requires a caller, who is passed with the request. */
  guarded<Name extends keyof Declared & RouteName>(
    name: Name,
    serve: (
      c: Context<Env, Path<Name>>,
      caller: Caller & Actor,
      request: RequestOf<Declared[Name]>,
    ) => Response | Promise<Response>,
  ): void;
  /** A route for anyone. */
  open<Name extends keyof Declared & RouteName>(
    name: Name,
    serve: (c: Context<Env, Path<Name>>, request: RequestOf<Declared[Name]>) => Response | Promise<Response>,
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
  readonly readLimits: ReadLimits;
  /** Counts a request of a person. Rejects with `TooManyRequests`. */
  readonly countPerson: (c: Context, personId: string) => Promise<void>;
  readonly forward: Forward;
}

/** An empty set of the declared routes; mount its `hono` in the application. A guarded POST can be repeated safely
 *  (M17). */
export function newRoutes<Declared extends Declarations>(
  { authorise, keptAnswers, readLimits, countPerson, forward }: RouteDeps,
  declared: Declared,
): Routes<Declared> {
  const hono = new Hono<Env>();
  const serving = (name: RouteName, text: RouteText, handler: (c: Context<Env>) => Promise<Response>) => {
    const { about, ends = false, changesUpstreams = false, long = false, answersWithinMs } = text;
    if (about === undefined) hono.on(...methodAndPathOf(name), handler);
    else
      hono.on(
        ...methodAndPathOf(name),
        forward({ about, idOf: idIn(name, text), ends, changesUpstreams, long, answersWithinMs }),
        handler,
      );
  };
  return {
    hono,
    guarded(name, serve) {
      const action = ROUTES[name] as Action | "anyone";
      if (action === "anyone") throw new TypeError(`${name} has no action in roles.ts`);
      const text = textOf(declared, name);
      const read = readerOf(text);
      serving(name, text, async (c) => {
        const credentials = credentialsOf(c);
        const caller = await authorise(credentials, action, (known) =>
          noteForLog(c, loggedCaller(known, credentials.sessionId)),
        );
        if (caller.who.kind === "user") await countPerson(c, caller.who.id);
        const request = await read(c);
        const answer = async () =>
          await withWarnings(
            await serve(c as never, { ...caller, requestId: c.get("requestId") }, request as never),
            request.unknown,
          );
        if (c.req.method === "POST") return await answeredOnce(c, keptAnswers, caller, answer);
        return readsStore(name) ? await readLimits.run(caller.organisation.id, answer) : await answer();
      });
    },
    open(name, serve) {
      if (ROUTES[name] !== "anyone") throw new TypeError(`${name} is not for anyone in roles.ts`);
      const text = textOf(declared, name);
      const read = readerOf(text);
      serving(name, text, async (c) => {
        const request = await read(c);
        return await withWarnings(await serve(c as never, request as never), request.unknown);
      });
    },
  };
}

function textOf(declared: Declarations, name: RouteName): RouteText {
  const text = declared[name];
  if (text === undefined) throw new TypeError(`${name} is not declared`);
  return text;
}

/** Finds the id of what a request is about: the first parameter of its path, or a member of its query or body. */
function idIn(name: RouteName, { about, query }: RouteText): Destination["idOf"] {
  const [, parameter] = /\{(\w+)\}/.exec(name) ?? [];
  if (parameter === "file") return async (c) => /^(.+)\.flv$/.exec(c.req.param("file") ?? "")?.[1] ?? null;
  if (parameter !== undefined) return async (c) => c.req.param(parameter) ?? null;
  const member = about === "client" ? "client_id" : "stream";
  if (query !== undefined) return async (c) => c.req.query(member) ?? null;
  return async (c) => String((await bodyMember(c, member)) ?? "") || null;
}

const NO_QUERY = z.object({});
/** The parser for requests of a route. */
function readerOf({
  query = NO_QUERY,
  body,
}: RouteText): (c: Context) => Promise<Request<z.ZodObject, z.ZodObject> & { readonly unknown: readonly string[] }> {
  const readQuery = queryReader(query);
  return async (c) => {
    const query = readQuery(c);
    if (body !== undefined) return { query, ...(await readBody(c, body)) };
    return { query, body: {}, unknown: isWarned(c.req.method) ? await unreadMembers(c) : [] };
  };
}

/** Arguments for Hono's `on`. */
function methodAndPathOf(name: RouteName): [method: string, path: string] {
  const [method, path] = name.split(" ") as [string, string];
  return [method, path.replaceAll(/\{(\w+)\}/g, ":$1")];
}

// Shared schemas. Numbers and sentences that callers rely on are defined in docs/decisions.md.

export type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 429 | 500 | 503;

/** Names of the security schemes. */
export const API_KEY_SCHEME = "apiKey";
export const SESSION_SCHEME = "session";

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
