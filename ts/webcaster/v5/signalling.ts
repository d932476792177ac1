// The client side of the deprecated v5 signalling socket: requests with their replies, and pushes.
import type { EndedBroadcast } from "./events.ts";

/** How long a reply is awaited, ms: meanwhile the customer may be asked, who has 5 s. */
const REPLY_LIMIT_MS = 15_000;
/** How long the socket may take to open, ms: browsers wait for minutes. */
const OPEN_LIMIT_MS = 15_000;
/** The path of the service's socket. */
const PATH = "/p/webrtcws";

/** An error by its number: those of the service from 101001 on, 7000 for a lost connection, and the client's own. */
export class RtcUserError extends Error {
  readonly code: number;
  readonly userinfo: Readonly<Record<string, unknown>>;
  /** Why the service ended the broadcast, if it said so. */
  readonly ended: EndedBroadcast | null;

  constructor(
    code: number,
    message: string,
    name = "ServerError",
    userinfo: RtcUserError["userinfo"] = {},
    ended: EndedBroadcast | null = null,
  ) {
    super(message);
    this.name = name;
    this.code = code;
    this.userinfo = userinfo;
    this.ended = ended;
  }
}

/** The connection to the service was lost. */
export const CONNECTION_LOST = 7000;

/** A message of the service: replies have a `message_id`, pushes a `type`. */
export interface Push {
  readonly type: string;
  readonly sender_peer?: string;
  readonly receiver_peer?: string;
  readonly data?: unknown;
}

type Reply = Readonly<Record<string, unknown>>;

/** Counts per page load: a second socket continues the numbers of the first. */
let nextId = 0;

export class Signalling {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, { resolve(reply: Reply): void; reject(error: RtcUserError): void }>();
  #isClosing = false;
  /** Receives pushes. */
  onPush: (push: Push) => void = () => {};
  /** The service closed the socket, or it broke. */
  onLost: () => void = () => {};

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#handle(String(data));
    socket.onclose = () => this.#handleClosed();
  }

  /** `server`: `wss://host/p/webrtcws`, or the service's `https://host`. */
  static async open(server: string): Promise<Signalling> {
    const socket = new WebSocket(socketUrl(server));
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve, reject) => {
      const unreachable = () => reject(new RtcUserError(CONNECTION_LOST, "The service cannot be reached"));
      timer = setTimeout(() => {
        unreachable();
        socket.close();
      }, OPEN_LIMIT_MS);
      socket.onopen = () => resolve();
      socket.onclose = unreachable;
    }).finally(() => clearTimeout(timer));
    return new Signalling(socket);
  }

  /** The reply, without its id. Rejects with `RtcUserError`. */
  async call(type: string, message: object): Promise<Reply> {
    const id = nextId;
    nextId += 1;
    if (this.#socket.readyState !== WebSocket.OPEN) throw lost();
    this.#socket.send(JSON.stringify({ type, message, message_id: id }));
    return await new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(() => this.#settle(id)?.reject(lost()), REPLY_LIMIT_MS);
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer);
          settle(value);
        };
      };
      this.#pending.set(id, { resolve: settled(resolve), reject: settled(reject) });
    });
  }

  /** Calls that are still without a reply fail immediately: the closing handshake may take long. */
  close(): void {
    this.#isClosing = true;
    this.#socket.close();
    this.#failPending();
  }

  #handle(text: string): void {
    const { message_id: id, error, ...rest } = JSON.parse(text) as Reply;
    if (id === undefined) {
      const { type } = rest;
      if (typeof type === "string") this.onPush({ ...rest, type } as Push);
      return;
    }
    const pending = this.#settle(Number(id));
    if (error) pending?.reject(readError(error as Reply));
    else pending?.resolve(rest);
  }

  #settle(id: number) {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #handleClosed(): void {
    this.#failPending();
    if (!this.#isClosing) this.onLost();
  }

  #failPending(): void {
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(lost());
  }
}

function lost(): RtcUserError {
  return new RtcUserError(CONNECTION_LOST, "The connection to the service is lost");
}

function readError({ code, message, name, userinfo }: Reply): RtcUserError {
  return new RtcUserError(Number(code), String(message), String(name), (userinfo ?? {}) as RtcUserError["userinfo"]);
}

function socketUrl(server: string): string {
  const url = new URL(server.replace(/^http/i, "ws"));
  if (url.pathname === "/") url.pathname = PATH;
  return url.href;
}
