// WHIP in the OpenAPI document (P1–P13): its routes use SDP and problem documents, and are implemented in
// whip-endpoint.ts and whip-session.ts.
import type { RouteConfig } from "@hono/zod-openapi";
import { type Registry, z } from "../openapi.ts";
import { PROBLEM_CODES } from "./problem-page.ts";
import { PROBLEM_PAGE, WHIP_PATH } from "./whip-problems.ts";

const SESSION_PATH = `${WHIP_PATH}/{session}`;
const METADATA_PATH = `${SESSION_PATH}/metadata`;
const FRAGMENT_TYPE = "application/trickle-ice-sdpfrag";

const Problem = z
  .object({
    type: z.string().openapi({ description: "Where the code is explained", example: `${PROBLEM_PAGE}#unknown_stream` }),
    title: z.string().openapi({ description: "The code in words", example: "Unknown stream" }),
    status: z.int().openapi({ description: "The HTTP status", example: 404 }),
    detail: z.string().openapi({ description: "What is wrong with this request", example: "No such stream" }),
    code: z.string().openapi({ description: "Stable", example: "unknown_stream" }),
    ended_by: z
      .string()
      .optional()
      .openapi({ description: "With 410: who or what ended the session", example: "person" }),
    final: z
      .boolean()
      .optional()
      .openapi({ description: "With 410: a client must not start again by itself", example: true }),
  })
  .openapi("Problem");

const text = (description: string, example: string) => z.string().openapi({ description, example });
const session = text("The last segment of the session's Location", "5f3c1c9e-6f0b-4f5a-9d0e-0d3b5c7a9e21");
const LEFT = z.literal("1").optional().openapi({
  description:
    "The broadcaster left without meaning to end the broadcast: upstreams and players are held for the next publish",
});
const ETAG = { ETag: text("The session's entity tag, for If-Match", '"3c1c9e"') };
const SDP = text("An SDP description", "v=0\r\n…");
const FRAGMENT = text("ICE candidates, or new credentials (RFC 8840)", "a=ice-ufrag:EsAw\r\n…");

/** Adds WHIP to the document. */
export function describeWhip(registry: Registry): void {
  for (const call of calls()) registry.registerPath({ tags: ["WHIP"], security: [], ...call });
}

function calls(): RouteConfig[] {
  const atSession = { request: { params: z.object({ session }) } };
  return [
    postOffer(),
    ...[WHIP_PATH, SESSION_PATH, METADATA_PATH].map((path) => preflight(path, path === WHIP_PATH ? {} : atSession)),
    ...[WHIP_PATH, SESSION_PATH].map((path): RouteConfig => {
      const name = path === WHIP_PATH ? "Whip" : "WhipSession";
      const request = path === WHIP_PATH ? {} : atSession;
      return {
        method: "get",
        path,
        operationId: `get${name}`,
        summary: path === WHIP_PATH ? "Nothing to read" : "Whether a session has ended, and why",
        description:
          path === WHIP_PATH
            ? "No content, and no error (RFC 9725 section 4.1)."
            : "No content; for 120 s after the session's end, who ended it and why. Ask before you reconnect.",
        ...request,
        responses: {
          204: { description: "Nothing" },
          ...(path === WHIP_PATH ? problems(413, 500) : problems(410, 413, 429, 500, 503)),
        },
      };
    }),
    {
      method: "patch",
      path: SESSION_PATH,
      operationId: "patchWhipSession",
      summary: "Add ICE candidates, or restart ICE",
      description: "New ICE credentials (both ufrag and password) restart ICE; the current ones add candidates.",
      request: {
        params: z.object({ session }),
        headers: z.object({ "If-Match": text("The session's entity tag, or *", '"3c1c9e"').optional() }),
        body: { required: true, content: { [FRAGMENT_TYPE]: { schema: FRAGMENT } } },
      },
      responses: {
        200: {
          description: "ICE has been restarted",
          headers: z.object(ETAG),
          content: { [FRAGMENT_TYPE]: { schema: FRAGMENT } },
        },
        204: { description: "The candidates have been added" },
        ...problems(400, 404, 410, 412, 413, 415, 428, 429, 500, 503),
      },
    },
    {
      method: "delete",
      path: SESSION_PATH,
      operationId: "deleteWhipSession",
      summary: "End the publish",
      description: "Anyone who knows the session URL can end it; no Authorization is needed.",
      request: { params: z.object({ session }), query: z.object({ left: LEFT }) },
      responses: { 200: { description: "Ended" }, ...problems(404, 410, 429, 500, 503) },
    },
    postMetadata(),
    {
      method: "get",
      path: `${WHIP_PATH}/status.json`,
      operationId: "getWhipStatus",
      summary: "Version of the server",
      description: "For clients that check whether the endpoint exists.",
      responses: {
        200: {
          description: "The version",
          content: {
            "application/json": { schema: z.object({ server_version: text("Of this gateway", "0.1.0") }) },
          },
        },
        ...problems(413, 500),
      },
    },
  ];
}

function postOffer(): RouteConfig {
  return {
    method: "post",
    path: WHIP_PATH,
    operationId: "postWhip",
    summary: "Publish by WebRTC",
    description:
      "Takes the SDP offer and returns the answer. No API key is needed; a web token as bearer supplies stream_name and " +
      "stream_url, which are otherwise required.",
    request: {
      query: z.object({
        stream_name: text(
          "With its custom arguments, percent-encoded as a whole",
          "Ab1Cd-9XyZ0?passcode=s3cret",
        ).optional(),
        stream_url: text("Where the stream is pushed to", "rtmp://ingest.example/live").optional(),
        audio_bitrate: z.int().min(32_000).max(320_000).optional().openapi({
          description: "Bitrate of the AAC transcoded from Opus, bit/s",
          default: 128_000,
          example: 96_000,
        }),
        stereo: z.enum(["0", "1"]).optional().openapi({ description: "1: request two channels", example: "1" }),
        connect_info: text(
          "A JSON object of at most 2 KiB for the upstream's connect command",
          '{"room":"1"}',
        ).optional(),
      }),
      body: { required: true, content: { "application/sdp": { schema: SDP } } },
    },
    responses: {
      201: {
        description: "The answer",
        headers: z.object({
          Location: text(
            "Absolute URL of the session",
            `https://ingest.example${WHIP_PATH}/5f3c1c9e-6f0b-4f5a-9d0e-0d3b5c7a9e21`,
          ),
          ...ETAG,
          Link: text("One line for each ICE server", '<turn:turn.example>; rel="ice-server"').optional(),
        }),
        content: { "application/sdp": { schema: SDP } },
      },
      ...problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503, 504),
    },
  };
}

function postMetadata(): RouteConfig {
  return {
    method: "post",
    path: METADATA_PATH,
    operationId: "postWhipMetadata",
    summary: "Send metadata along with the stream",
    description: "Sent to upstreams and players as an RTMP data message.",
    request: {
      params: z.object({ session }),
      body: {
        required: true,
        content: {
          "application/json": {
            schema: z.object({
              handlerName: z
                .enum(["onMetaData", "onCuePoint"])
                .openapi({ description: "The name of the message", example: "onCuePoint" }),
              payload: z
                .record(z.string(), z.unknown())
                .openapi({ description: "At most 6 deep, and 16 KiB", example: { name: "goal" } }),
            }),
          },
        },
      },
    },
    responses: {
      200: { description: "Sent", content: { "application/json": { schema: z.object({}) } } },
      ...problems(400, 404, 410, 413, 429, 500, 503),
    },
  };
}

/** Lists every code of each status. */
function problems(...statuses: readonly number[]) {
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = Object.entries(PROBLEM_CODES).filter(([, [of]]) => of === status);
      const description = codes.map(([code, [, title]]) => `${code}: ${title}`).join("; ");
      return [status, { description, content: { "application/problem+json": { schema: Problem } } }];
    }),
  );
}

function preflight(path: string, request: Pick<RouteConfig, "request">): RouteConfig {
  const name = path.replace(/[^a-z]+(\w)/g, (_, first: string) => first.toUpperCase()).replace(/[^A-Za-z]/g, "");
  return {
    method: "options",
    path,
    operationId: `options${name}`,
    summary: "Supported methods and content types",
    description: "For CORS preflights and clients that check first.",
    ...request,
    responses: {
      200: {
        description: "See the headers",
        headers: z.object({
          "Accept-Post": text("Content types of POST", "application/sdp"),
          "Accept-Patch": text("Content types of PATCH", FRAGMENT_TYPE),
          "Access-Control-Allow-Methods": text("Supported methods", "POST, PATCH, DELETE, GET, OPTIONS"),
        }),
      },
      ...problems(413, 500),
    },
  };
}
