// The deprecated v5 socket in the OpenAPI document: its handshake; what is said on it is in docs/v5.md.
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Env } from "../openapi.ts";
import { V5_PATH } from "./v5-limits.ts";

/** Adds the handshake to the document. Call once. */
export function describeV5(registry: OpenAPIHono<Env>["openAPIRegistry"]): void {
  registry.registerPath({
    method: "get",
    path: V5_PATH,
    operationId: "openV5Socket",
    tags: ["WHIP"],
    deprecated: true,
    security: [],
    summary: "Publish by the signalling of v5 clients",
    description:
      "A WebSocket (RFC 6455) on which the service makes the offer, for pages that still use it. Its messages are in " +
      "docs/v5.md of the repository; new clients use POST /p/webrtc.",
    responses: {
      101: { description: "The socket is open: sign in within ten seconds" },
      426: { description: "The request asked for no WebSocket" },
      429: { description: "Too many sockets or requests of this address, or sockets in all" },
    },
  });
}
