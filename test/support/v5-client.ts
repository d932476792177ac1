// A client of the deprecated v5 signalling, frame by frame, like deployed ones.
import { WebSocket } from "ws";
import { until } from "./child.ts";

export type Message = Readonly<Record<string, unknown>> & {
  readonly error?: { readonly code: number; readonly [member: string]: unknown };
};

export interface V5Client {
  readonly socket: WebSocket;
  /** Everything received, in order. */
  readonly messages: readonly Message[];
  /** Sends a request and waits for the reply with its id. */
  call(type: string, message?: object): Promise<Message>;
  /** Sends any text or bytes. */
  raw(frame: string | Buffer): void;
  /** Waits for the first push of this type that was not yet waited for. */
  push(type: string): Promise<Message>;
  /** Signs in with `credentials`; returns the session's id. */
  signIn(credentials: object): Promise<string>;
  /** The close code. */
  closed(): Promise<number>;
  close(): Promise<void>;
}

/** Connects to the socket of the service at `http`; message ids count from `firstId`. `address`: of the client, by default
 *  its own; the service must trust ours as a proxy's. */
export async function connectV5(http: string, firstId = 7, address?: string): Promise<V5Client> {
  const headers = address === undefined ? {} : { "x-forwarded-for": address };
  const socket = new WebSocket(`${http.replace(/^http/, "ws")}/p/webrtcws`, { headers });
  const messages: Message[] = [];
  const taken = new Set<Message>();
  let code: number | null = null;
  let nextId = firstId;
  socket.on("message", (data) => messages.push(JSON.parse(data.toString()) as Message));
  socket.on("close", (closed) => {
    code = closed;
  });
  socket.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("unexpected-response", (_, { statusCode }) => reject(new Error(`answered ${statusCode}`)));
    socket.once("error", reject);
  });

  async function call(type: string, message?: object): Promise<Message> {
    const id = nextId;
    nextId += 1;
    socket.send(JSON.stringify({ type, message, message_id: id }));
    return await until(`the reply to ${type}`, () => messages.find(({ message_id }) => message_id === id));
  }

  return {
    socket,
    messages,
    call,
    raw: (frame) => socket.send(frame),
    async push(type) {
      const isNew = (message: Message) => message.type === type && !taken.has(message);
      const found = await until(`a ${type}`, () => messages.find(isNew));
      taken.add(found);
      return found;
    },
    async signIn(credentials) {
      const reply = await call("sign_in", { api_version: "5", ...credentials });
      if (typeof reply.session_id !== "string") throw new Error(`not signed in: ${JSON.stringify(reply)}`);
      return reply.session_id;
    },
    async closed() {
      return await until("the socket is closed", () => code);
    },
    async close() {
      socket.close();
      await until("the socket is closed", () => code !== null);
    },
  };
}
