// One HTTP or HTTPS port, with limits for slow peers, and a stop that lets running requests finish.
import { createServer as createHttpServer, type Server, type ServerOptions } from "node:http";
import { createServer as createHttpsServer, Server as HttpsServer } from "node:https";
import { type AddressInfo, Server as NetServer } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { ownDescriptorLimit } from "../capacity/figures.ts";
import type { Certificate } from "../certificate.ts";
import { ConfigInvalid, PortTaken } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { openAcceptors } from "./acceptors.ts";
import { createWebSocketServer, serveOtherUpgrades, type WebSockets } from "./web-sockets.ts";

/** How long a peer may take for its headers, and for the whole request, ms. */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** How long a TLS handshake may take, ms. */
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** How long an idle connection may wait for its next request, ms. */
const IDLE_TIMEOUT_MS = 5_000;
/** Longest header block, bytes; a longer one gets a 431. */
const HEADERS_LIMIT_BYTES = 16_384;
/** Concurrent connections; further ones are closed immediately. Each uses a file descriptor and some 10 kB:
 *  where descriptors are scarce a port takes only a share, so that HTTP cannot exhaust those of RTMP and the
 *  store (reactor/connection_limits.rs). */
const CONNECTIONS_LIMIT = 10_000;
const DESCRIPTORS_SHARE = 8;
/** How often Node checks these timeouts, ms; its own default of 30 s would turn the limits into 35 and 40 s. */
const TIMEOUT_CHECK_MS = 2_500;
/** While stopping: how often idle connections are closed (Node 20 does not do that itself), and when all of them are,
 *  ms. */
const IDLE_CHECK_MS = 100;
const STOP_LIMIT_MS = 5_000;

export interface Listening {
  /** The actual port, also when 0 was requested. */
  readonly port: number;
  /** From here on every response says `Connection: close`. */
  drain(): void;
  /** New connections use this certificate. Throws when it cannot be used; the old one stays. */
  setCertificate(certificate: Certificate): void;
  /** Descriptor of the listening socket; null when there is none any more. */
  socket(): number | null;
  /** Accepts no new connection; open ones continue until `stop`. The socket may be shared with another process. */
  stopListening(): void;
  /** Accepts no new connection, lets running requests finish within 5 s, closes the rest. */
  stop(): Promise<void>;
}

export interface ListenOptions {
  /** Plain HTTP without one. */
  readonly certificate?: Certificate | null;
  /** Whether some route opens WebSockets. */
  readonly takesWebSockets?: boolean;
  /** Descriptor of a listening socket to use instead of the address; this port owns it from then on. */
  readonly socket?: number | undefined;
  /** Duplicates the descriptor of a socket: then several connections are accepted per turn of the event loop. */
  readonly duplicate?: (descriptor: number) => number;
}

/** Listens on `host`:`port`, with TLS when there is a certificate. Rejects with `PortTaken` or `ConfigInvalid`; `name`
 *  is the setting that chose the port. */
export async function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  address: { readonly name: string; readonly host: string; readonly port: number },
  { certificate = null, takesWebSockets = false, socket, duplicate }: ListenOptions = {},
): Promise<Listening> {
  const { name, host, port } = address;
  const webSockets = takesWebSockets ? createWebSocketServer() : null;
  const server = createServer(fetch, host, certificate, webSockets);
  if (webSockets !== null) serveOtherUpgrades(server);
  const share = Math.floor((ownDescriptorLimit() ?? Number.POSITIVE_INFINITY) / DESCRIPTORS_SHARE);
  server.maxConnections = Math.min(CONNECTIONS_LIMIT, share);
  let draining = false;
  server.prependListener("request", (_, response) => {
    if (draining) response.setHeader("connection", "close");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => reject(portError(cause, name, host, port)));
    if (socket === undefined) server.listen(port, host, resolve);
    else server.listen({ fd: socket }, resolve);
  });
  const descriptor = descriptorOf(server);
  const acceptors =
    duplicate === undefined || descriptor === null ? null : await openAcceptors(server, descriptor, duplicate);
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  let acceptorsClosed: Promise<void> | undefined;
  const closeAcceptors = () => (acceptorsClosed ??= acceptors?.close());
  return {
    port: (server.address() as AddressInfo).port,
    drain() {
      draining = true;
    },
    setCertificate(renewed) {
      if (!(server instanceof HttpsServer)) return;
      // Bun does not support it.
      if (!("setSecureContext" in server)) throw new Error("under this runtime a restart is needed to use it");
      server.setSecureContext(renewed);
    },
    socket: () => descriptorOf(server),
    stopListening() {
      draining = true;
      void closeAcceptors();
      // Not the HTTP server's own `close`, which would cut off connections that wait for their next request.
      if (server.listening) NetServer.prototype.close.call(server);
    },
    async stop() {
      draining = true;
      const closing = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
      const limit = setTimeout(() => {
        server.closeAllConnections();
        webSockets?.terminateAll();
      }, STOP_LIMIT_MS);
      webSockets?.closeAll();
      const allClosed = Promise.all([closed, closeAcceptors()]);
      if (server.listening) server.close();
      server.closeIdleConnections();
      await allClosed;
      clearInterval(closing);
      clearTimeout(limit);
    },
  };
}

/** Node keeps it in a member that its types do not include. */
function descriptorOf(server: Server | HttpsServer): number | null {
  const { _handle: handle } = server as { readonly _handle?: { readonly fd: number } | null };
  return handle?.fd ?? null;
}

/** The adaptor's options, for either protocol. */
interface Served {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly hostname: string;
  readonly websocket?: Pick<WebSockets, "server">;
}

function createServer(
  fetch: (request: Request) => Response | Promise<Response>,
  hostname: string,
  certificate: Certificate | null,
  webSockets: WebSockets | null,
): Server | HttpsServer {
  const bounds: ServerOptions = {
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    maxHeaderSize: HEADERS_LIMIT_BYTES,
  };
  const options: Served = { fetch, hostname, ...(webSockets === null ? {} : { websocket: webSockets }) };
  if (certificate === null) {
    return createAdaptorServer({ ...options, createServer: createHttpServer, serverOptions: bounds }) as Server;
  }
  try {
    const serverOptions = { ...bounds, ...certificate, handshakeTimeout: HANDSHAKE_TIMEOUT_MS };
    return createAdaptorServer({ ...options, createServer: createHttpsServer, serverOptions }) as HttpsServer;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new ConfigInvalid(`http.tls_cert, http.tls_key: cannot be used: ${reason}`, { cause });
  }
}

/** The error for people when a port cannot be opened. */
export function portError(cause: NodeJS.ErrnoException, name: string, host: string, port: number): PortTaken {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: "it is in use by another program",
    EACCES: "this user may not listen on it",
    EADDRNOTAVAIL: "this machine does not have that address",
    ENOTFOUND: "that host name does not resolve",
  };
  const reason = reasons[cause.code ?? ""] ?? cause.message;
  return new PortTaken(`cannot listen on ${host}:${port} (${name}): ${reason}`, { cause });
}
