// The WebSockets of an HTTP port: bounded frames, an end of their own, since Node counts them among no requests; and
// requests that ask for another protocol than WebSocket.
import type { IncomingMessage, Server } from "node:http";
import { Server as HttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { WebSocketServerLike } from "@hono/node-server";
import { WebSocketServer } from "ws";

/** Longest message, bytes; a longer one ends its socket (1009). */
const MESSAGE_LIMIT_BYTES = 65_536;
/** Close code of RFC 6455 7.4.1: the server goes away. */
const GOING_AWAY = 1001;

export interface WebSockets {
  readonly server: WebSocketServerLike;
  /** Says goodbye to every client. */
  closeAll(): void;
  /** Ends those that did not answer it. */
  terminateAll(): void;
}

/** What opens WebSockets for the routes of a port; it listens nowhere itself. Messages are small: nothing is compressed. */
export function createWebSocketServer(): WebSockets {
  const options = { noServer: true, maxPayload: MESSAGE_LIMIT_BYTES, perMessageDeflate: false };
  const server = new WebSocketServer(options);
  return {
    // Its options may be undefined by their type, and are not.
    server: server as WebSocketServerLike,
    closeAll() {
      for (const client of server.clients) client.close(GOING_AWAY);
    },
    terminateAll() {
      for (const client of server.clients) client.terminate();
    },
  };
}

type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Once anybody listens to `upgrade`, Node gives it every request that offers another protocol, such as the `h2c` of a
 *  Java client, and answers none itself. Whoever does not want a WebSocket is served as if it had not asked (RFC 9110
 *  7.8). */
export function serveOtherUpgrades(server: Server | HttpsServer): void {
  const [openWebSocket] = server.listeners("upgrade") as Upgrade[];
  server.removeAllListeners("upgrade");
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() === "websocket") openWebSocket?.call(server, request, socket, head);
    else serveAgain(server, request, socket, head);
  });
}

/** The connection begins anew with the same request, but for what asked for the other protocol. */
function serveAgain(server: Server | HttpsServer, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit(server instanceof HttpsServer ? "secureConnection" : "connection", socket);
}
