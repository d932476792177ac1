// The connections to customers' webhooks: kept alive, TLS verified against the public authorities and the operator's,
// every address checked by the guard.
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import { Agent, buildConnector } from "undici/index.js";
import { Turnstile } from "../../capacity/turnstile.ts";
import { guardConnector, guardedLookup } from "../addresses/address-guard.ts";
import type { Resolve } from "../addresses/resolver.ts";
import { handingOutSockets, watchedPool } from "./connection-steps.ts";
import { HEAD_LIMIT_BYTES } from "./response-head.ts";

/** How long an idle connection is kept unless the customer's server names a time (Keep-Alive), ms. Node's own servers
 *  close after 5 s. */
const KEEP_ALIVE_MS = 4_000;
/** The longest that it is kept whatever the server says, ms. */
const KEEP_ALIVE_LIMIT_MS = 60_000;
/** How much earlier than the server says, ms: its own clock runs from the moment it sent the response. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
/** Bounds connection attempts whose call has already timed out, ms. */
const CONNECT_LIMIT_MS = 10_000;
/** Connections opened in one turn of the event loop: starting a handshake costs about half a millisecond. */
const BEGUN_IN_A_TURN = 2;
/** Time between two connections to the same server, ms. Its certificates would otherwise arrive in the same turn, where
 *  each takes a millisecond or two, and a customer that needs a hundred connections would block everybody else for that
 *  long. */
const BEGUN_EVERY_MS = 2;
/** A connection that failed before a request byte could be written on it. */
export class NotConnected extends Error {
  readonly code = "not_connected";
  constructor(cause: Error) {
    super("webhook connection failed", { cause });
    this.name = "NotConnected";
  }
}

/** The most recent context, and its certificates. Parsing the public roots takes 40 ms. */
let latest: { readonly webhookCa: string | null; readonly context: SecureContext } | null = null;

/** One TLS context shared by all connections. */
function trusting(webhookCa: string | null): SecureContext {
  if (latest === null || latest.webhookCa !== webhookCa) {
    const context = createSecureContext(webhookCa === null ? {} : { ca: [...rootCertificates, webhookCa] });
    latest = { webhookCa, context };
  }
  return latest.context;
}

/** `webhookCa`: PEM certificates trusted in addition to the public ones, or null. `dev` allows private addresses. The
 *  gates limit the number of connections; each call's deadline limits its time. */
export function createConnections(options: {
  readonly webhookCa: string | null;
  readonly dev: boolean;
  readonly resolve?: Resolve;
  /** Whether connections are kept for further calls; by default they are. */
  readonly isKept?: boolean;
}): Agent {
  const secureContext = trusting(options.webhookCa);
  const plain = handingOutSockets(
    buildConnector({ timeout: CONNECT_LIMIT_MS, secureContext, lookup: guardedLookup(options) }),
  );
  const connect = options.dev ? plain : guardConnector(plain);
  const turnstile = new Turnstile(BEGUN_IN_A_TURN);
  /** Those of servers to which connections wait to be opened, by address. */
  const servers = new Map<string, Turnstile>();
  return new Agent({
    factory: watchedPool,
    connect(target, callback) {
      const server = `${target.hostname}:${target.port}`;
      const own = servers.get(server) ?? new Turnstile(1, BEGUN_EVERY_MS);
      servers.set(server, own);
      own.pass(() => {
        if (own.waiting === 0) servers.delete(server);
        turnstile.pass(() => open(target, callback));
      });
    },
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_LIMIT_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    ...(options.isKept === false && { pipelining: 0 }),
    maxHeaderSize: HEAD_LIMIT_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  function open(target: buildConnector.Options, callback: buildConnector.Callback): void {
    try {
      connect(target, (...[error, socket]: buildConnector.CallbackArgs) => {
        if (error === null) callback(null, socket);
        else callback(new NotConnected(error), null);
      });
    } catch (error) {
      callback(new NotConnected(error instanceof Error ? error : new Error(String(error))), null);
    }
  }
}
