// The outcome of a connection to a webhook and the duration of each step: for the debug log, so that a customer's slow
// name server, network, TLS or application can be told apart. What arrives on it is read by `ResponseHead`.
import { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher, Pool } from "undici/index.js";
import type { Queued } from "./call-priority.ts";
import { ResponseHead } from "./response-head.ts";

/** One connection, or the attempt at one; null for steps it did not reach. Durations in ms. */
export interface ConnectionSteps {
  /** Addresses of the name; empty when the URL contains an address. */
  readonly resolved: readonly string[];
  /** The address connected to. */
  readonly address: string | null;
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
}

/** The slot of one connection in the pool, with the newest connection made there. */
export interface WatchedConnection {
  readonly newest: ConnectionSteps | null;
  /** Whether a byte of the response to the latest request on it has arrived. */
  readonly hasResponse: boolean;
}

/** A request that needs to know which connection it uses. */
export interface WatchingRequest extends Dispatcher.DispatchOptions {
  readonly onConnection?: (connection: WatchedConnection) => void;
  /** The call that it belongs to: how its connection waits to be opened, and for how long. */
  readonly queued?: Queued;
}

/** `factory` of an Agent: pools whose connections are observed. */
export function watchedPool(origin: string | URL, options: object): Dispatcher {
  return new Pool(origin, {
    ...options,
    factory: (of: URL, more: object) => new WatchedClient(of, more as Client.Options),
  });
}

class WatchedClient extends Client {
  readonly #connection: Watched;

  constructor(origin: URL, options: Client.Options) {
    const connection = new Watched();
    const { connect } = options;
    super(origin, typeof connect === "function" ? { ...options, connect: watched(connect, connection) } : options);
    this.#connection = connection;
  }

  override dispatch(options: WatchingRequest, handler: Dispatcher.DispatchHandler): boolean {
    options.onConnection?.(this.#connection);
    this.#connection.queued = options.queued;
    return super.dispatch(options, handler);
  }
}

class Watched implements WatchedConnection {
  newest: ConnectionSteps | null = null;
  response = new ResponseHead();
  /** The latest call here. */
  queued: Queued | undefined;
  get hasResponse(): boolean {
    return this.response.hasBegun;
  }
}

function watched(connect: buildConnector.connector, connection: Watched): buildConnector.connector {
  return (target, callback) => {
    const { queued } = connection;
    const begun = (socket: Socket): void => {
      connection.newest = watch(socket);
      connection.response = readTolerantly(socket);
      if (queued !== undefined) endWith(queued, socket);
    };
    connect({ ...target, begun, ...(queued && { queued }) } as WatchedTarget, callback);
  };
}

/** A connection to be opened. */
export type QueuedTarget = buildConnector.Options & { readonly queued?: Queued };
type WatchedTarget = QueuedTarget & { readonly begun?: (socket: Socket) => void };

/** A connection that its call no longer waits for is not opened. */
function endWith({ deadline }: Queued, socket: Socket): void {
  const late = () => socket.destroy(new Error("no connection in time"));
  deadline.whenOver(late);
  const forget = () => deadline.forget(late);
  socket.once("encrypted" in socket ? "secureConnect" : "connect", forget);
  socket.once("close", forget);
}

/** Wraps the connector that opens sockets: each socket is passed to the observer. */
export function handingOutSockets(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) => {
    // The connector returns the socket it opens, although its types do not say so.
    const socket: unknown = connect(target, callback);
    if (socket instanceof Socket) (target as WatchedTarget).begun?.(socket);
  };
}

/** Passes what is read from the socket through a `ResponseHead`. Requests on one connection follow one another, and each is
 *  written at once. */
function readTolerantly(socket: Socket): ResponseHead {
  const response = new ResponseHead();
  const { read, write } = socket;
  socket.read = (size?: number) => {
    for (;;) {
      const chunk = read.call(socket, size) as Buffer | null;
      if (chunk === null) return null;
      const readable = response.take(chunk);
      if (readable.length > 0) return readable;
    }
  };
  socket.write = ((...written: Parameters<Socket["write"]>) => {
    response.expect();
    return write.apply(socket, written);
  }) as Socket["write"];
  return response;
}

function watch(socket: Socket): ConnectionSteps {
  let from = performance.now();
  const since = (): number => {
    const [before, now] = [from, performance.now()];
    from = now;
    return now - before;
  };
  const steps = {
    resolved: [] as string[],
    address: null as string | null,
    dnsMs: null as number | null,
    connectMs: null as number | null,
    tlsMs: null as number | null,
  };
  socket.on("lookup", (error: Error | null, address: string) => {
    steps.dnsMs ??= since();
    if (error === null) steps.resolved.push(address);
  });
  socket.once("connect", () => {
    steps.connectMs = since();
    steps.address = socket.remoteAddress ?? null;
  });
  socket.once("secureConnect", () => {
    steps.tlsMs = since();
  });
  return steps;
}
