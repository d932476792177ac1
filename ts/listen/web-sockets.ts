// The WebSockets of an HTTP port: frames limited in size, and closed separately at the end, since Node does not count
// them among its requests; and requests that offer an upgrade to another protocol than WebSocket.
import type { IncomingMessage, Server } from "node:http";
import { Server as HttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { WebSocketServerLike } from "@hono/node-server";
import { WebSocketServer } from "ws";

/** Longest message, bytes; a longer one closes its socket (1009). */
const MESSAGE_LIMIT_BYTES = 65_536;
/** Close code of RFC 6455 7.4.1: the server is going away. */
const GOING_AWAY = 1001;

export interface WebSockets {
  readonly server: WebSocketServerLike;
  /** Sends a close frame to every client. */
  closeAll(): void;
  /** Terminates sockets whose client did not answer it. */
  terminateAll(): void;
}

/** Opens WebSockets for the routes of a port; it does not listen itself. Messages are small: nothing is compressed. */
export function createWebSocketServer(): WebSockets {
  const options = { noServer: true, maxPayload: MESSAGE_LIMIT_BYTES, perMessageDeflate: false };
  const server = new WebSocketServer(options);
  return {
    // Typed as possibly undefined, but always set.
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

/** Once there is a listener for `upgrade`, Node passes it every request that offers another protocol, such as the `h2c`
 *  of a Java client, and answers none itself. Requests for anything but WebSocket are served as if they had not offered
 *  an upgrade (RFC 9110 7.8). */
export function serveOtherUpgrades(server: Server | HttpsServer): void {
  const [openWebSocket] = server.listeners("upgrade") as Upgrade[];
  server.removeAllListeners("upgrade");
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() === "websocket") openWebSocket?.call(server, request, socket, head);
    else serveAgain(server, request, socket, head);
  });
}

/** Replays the request on its connection, without the headers that offered the other protocol. */
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
