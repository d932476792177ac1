// The connections to customers' webhooks: kept alive, TLS verified against the public authorities and the operator's,
// every address checked by the guard.
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import { Agent, buildConnector, type Dispatcher } from "undici/index.js";
import { Turnstile } from "../../capacity/turnstile.ts";
import { guardConnector, guardedLookup } from "../addresses/address-guard.ts";
import type { Resolve } from "../addresses/resolver.ts";
import { PRIORITIES, rankOf } from "./call-priority.ts";
import { handingOutSockets, type QueuedTarget, watchedPool } from "./connection-steps.ts";
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
/** Organisations whose connections and TLS sessions are kept; those used longest ago are forgotten first. */
const ORGANISATIONS_LIMIT = 4_096;

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

/** The connections to webhooks, apart by organisation: its name look-ups count against its own limit, and its connections
 *  wait for nobody else's. */
export interface Connections {
  /** Sends the calls of an organisation. `isKept` false: each call gets a new connection, which is closed after it. To be
   *  used immediately: what was used longest ago is forgotten. */
  of(organisation: string, isKept?: boolean): Dispatcher;
  destroy(): Promise<void>;
}

/** `webhookCa`: PEM certificates trusted in addition to the public ones, or null. `dev` allows private addresses. The
 *  gates limit the number of connections; each call's deadline limits its time. */
export function createConnections(options: {
  readonly webhookCa: string | null;
  readonly dev: boolean;
  readonly resolve?: Resolve;
}): Connections {
  const secureContext = trusting(options.webhookCa);
  const turnstile = new Turnstile(BEGUN_IN_A_TURN, { levels: PRIORITIES.length });
  /** Those of servers to which connections wait to be opened, by organisation and address. */
  const servers = new Map<string, Turnstile>();
  /** By organisation; the one used longest ago first. */
  const owners = new Map<string, Agent>();

  return {
    of(organisation, isKept = true) {
      const key = `${isKept ? "kept" : "new"} ${organisation}`;
      const known = owners.get(key) ?? open(organisation, isKept);
      owners.delete(key);
      owners.set(key, known);
      const [longest] = owners.keys();
      if (owners.size > ORGANISATIONS_LIMIT && longest !== undefined) forget(longest);
      return known;
    },
    async destroy() {
      const all = [...owners.values()];
      owners.clear();
      await Promise.all(all.map((agent) => agent.destroy()));
    },
  };

  function open(organisation: string, isKept: boolean): Agent {
    const plain = handingOutSockets(
      buildConnector({
        timeout: CONNECT_LIMIT_MS,
        secureContext,
        lookup: guardedLookup({ ...options, owner: organisation }),
      }),
    );
    const connect = options.dev ? plain : guardConnector(plain);
    const agent = new Agent({
      factory: watchedPool,
      connect(target, callback) {
        const opened = (...[error, socket]: buildConnector.CallbackArgs) => {
          if (error === null) callback(null, socket);
          else callback(new NotConnected(error), null);
        };
        inTurn(
          organisation,
          target,
          () => attempt(connect, target, opened),
          () => opened(new Error("no connection in time"), null),
        );
      },
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_LIMIT_MS,
      keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
      ...(!isKept && { pipelining: 0 }),
      maxHeaderSize: HEAD_LIMIT_BYTES,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return agent;
  }

  /** Calls in flight end as usual; idle connections are closed. */
  function forget(key: string): void {
    const owned = owners.get(key);
    owners.delete(key);
    void owned?.close().catch(() => {});
  }

  /** Calls `begin` once it is the connection's turn, those of publish calls first, or `late` when its call's deadline passes
   *  before. */
  function inTurn(organisation: string, target: QueuedTarget, begin: () => void, late: () => void): void {
    const server = `${organisation} ${target.hostname}:${target.port}`;
    const own = servers.get(server) ?? new Turnstile(1, { levels: PRIORITIES.length, pauseMs: BEGUN_EVERY_MS });
    servers.set(server, own);
    const { priority, deadline } = target.queued ?? { priority: "publish", deadline: null };
    const left = () => {
      if (own.waiting === 0) servers.delete(server);
    };
    const passAll = () => {
      deadline?.forget(leave);
      if (deadline?.hasPassed) late();
      else begin();
    };
    const passOwn = () => {
      left();
      turnstile.pass(passAll, rankOf(priority));
    };
    const leave = () => {
      if (!own.leave(passOwn) && !turnstile.leave(passAll)) return;
      left();
      late();
    };
    deadline?.whenOver(leave);
    own.pass(passOwn, rankOf(priority));
  }
}

function attempt(connect: buildConnector.connector, target: QueuedTarget, callback: buildConnector.Callback): void {
  try {
    connect(target, callback);
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)), null);
  }
}
