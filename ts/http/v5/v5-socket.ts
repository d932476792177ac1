// /p/webrtcws: the deprecated v5 signalling (docs/v5.md). The socket and its limits; the messages are in v5-connection.ts.
import { upgradeWebSocket } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { TooManyRequests } from "../../errors.ts";
import type { Authorise } from "../../organisation/callers.ts";
import type { Refusals } from "../../publish/refusals/refusals.ts";
import type { Whip } from "../../publish/whip/whip-publishes.ts";
import type { Tokens } from "../../token/tokens.ts";
import type { Env } from "../openapi.ts";
import { type ClientAddress, outgoingOf } from "../request/request.ts";
import { createV5Access } from "./v5-access.ts";
import { V5Connection } from "./v5-connection.ts";
import { createV5Limits, V5_PATH } from "./v5-limits.ts";
import { createNoteOfRefusal } from "./v5-refusals.ts";

/** Interval of pings, which detect a client that is unreachable, ms (S3). */
const PING_PAUSE_MS = 20_000;
/** How long a client may take to sign in, ms. */
const SIGN_IN_LIMIT_MS = 10_000;
/** Bytes queued for a client that does not read; beyond that it is disconnected. */
const UNREAD_LIMIT_BYTES = 1_048_576;
/** An organisation that still uses this is logged once in this time, ms. */
const NOTE_PAUSE_MS = 86_400_000;
/** Close codes of RFC 6455 7.4.1. */
const POLICY_VIOLATION = 1008;
/** Retry-After of a client when there are too many, seconds. */
const RETRY_AFTER_S = 10;

export interface V5SocketDeps {
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly tokens: Tokens;
  readonly authorise: Authorise;
  readonly whip: Whip;
  readonly refusals: Pick<Refusals, "note">;
  readonly clientAddress: ClientAddress;
}

export function v5Routes(deps: V5SocketDeps): Hono<Env> {
  const { clock, log, whip, clientAddress } = deps;
  const routes = new Hono<Env>();
  const access = createV5Access(deps);
  const admitSocket = createV5Limits(clock);
  const noteUse = createNoteOfUse(deps);
  const noteRefusal = createNoteOfRefusal(deps);

  // Before the socket is prepared: its place would be kept as long as the connection.
  routes.get(V5_PATH, (c, next) => (asksForSocket(c) ? next() : c.body(null, 426, { upgrade: "websocket" })));
  routes.get(
    V5_PATH,
    upgradeWebSocket((c) => {
      const address = clientAddress(c);
      const hit = whip.limit(address, "session");
      const place = hit === null ? admitSocket(address) : null;
      if (place === null) {
        const refused = { request: "publish", protocol: "v5", reason: "too_many_requests", name: null } as const;
        deps.refusals.note({ ...refused, address, description: null });
        throw new TooManyRequests(hit?.retryAfterS ?? RETRY_AFTER_S);
      }
      const requestHost = new URL(c.req.url).hostname;
      // A handshake that is never completed releases its slot, too.
      c.env.incoming.socket.once("close", place.release);
      let end = (): void => {};
      let connection: V5Connection | null = null;

      return {
        onOpen(_, context) {
          // Created by `ws`, as the server in ts/listen is.
          const socket = context.raw as WebSocket;
          connection = new V5Connection(
            { access, whip, noteRefusal, log, noteUse },
            {
              address,
              requestHost,
              send(text) {
                if (socket.bufferedAmount > UNREAD_LIMIT_BYTES) socket.terminate();
                else context.send(text);
              },
              cutOff: () => context.close(POLICY_VIOLATION, "Too many messages"),
            },
          );
          const opened = connection;
          end = keepAlive(socket, () => {
            if (!opened.isSignedIn) context.close(POLICY_VIOLATION, "Not signed in");
          });
        },
        onMessage({ data }, context) {
          if (!place.admit()) return context.close(POLICY_VIOLATION, "Too many messages");
          connection?.handleFrame(typeof data === "string" ? data : null);
        },
        onClose() {
          end();
          place.release();
          connection?.handleClosed();
        },
        // For a frame that is too long or malformed `ws` closes the socket itself.
        onError: () => log.debug({ address }, "v5 socket failed"),
      };
    }),
  );
  return routes;
}

/** Whether the request is a WebSocket upgrade: Node provides no response object of its own for one. */
function asksForSocket(c: Context): boolean {
  return outgoingOf(c) === undefined && c.req.header("upgrade")?.toLowerCase() === "websocket";
}

/** Pings, and disconnects a client that has not answered by the next ping. Returns a function that stops it. */
function keepAlive(socket: WebSocket, handleSignInLimit: () => void): () => void {
  let isHeard = true;
  socket.on("pong", () => {
    isHeard = true;
  });
  const pinging = setInterval(() => {
    if (!isHeard) return socket.terminate();
    isHeard = false;
    socket.ping();
  }, PING_PAUSE_MS);
  const signingIn = setTimeout(handleSignInLimit, SIGN_IN_LIMIT_MS);
  return () => {
    clearInterval(pinging);
    clearTimeout(signingIn);
  };
}

/** Logs one line per organisation a day. */
function createNoteOfUse({ clock, log }: Pick<V5SocketDeps, "clock" | "log">): (organisation: string) => void {
  const noted = new Map<string, number>();
  return (organisation) => {
    const now = clock.now();
    if (now < (noted.get(organisation) ?? Number.NEGATIVE_INFINITY) + NOTE_PAUSE_MS) return;
    noted.set(organisation, now);
    log.warn({ organisation }, "a broadcast used the deprecated v5 signalling: use WHIP instead");
  };
}
