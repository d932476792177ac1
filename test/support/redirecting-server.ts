// A minimal RTMP server that records nothing: it redirects every publisher, in one of the known forms, and reports
// whether they follow.
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

export const forms = ["302 to connect", "302 to publish", "ReconnectRequest"] as const;
export type Form = (typeof forms)[number];

export interface RedirectingServer {
  /** `rtmp://127.0.0.1:…/live` */
  readonly rtmp: string;
  /** Connections that it got itself, and whether the redirect was sent. */
  readonly seen: { connections: number; said: boolean };
  /** Number of connections that followed the redirect. */
  followed(): number;
  close(): void;
}

const C0_C1_BYTES = 1 + 1536;
const HANDSHAKE_BYTES = C0_C1_BYTES + 1536;
const CHUNK_BYTES = 65_536;
const SET_CHUNK_SIZE = 1;
const COMMAND = 20;
/** How long a redirected peer has to read the redirect, ms. */
const CLOSING_MS = 1_000;

export async function startRedirectingServer(form: Form): Promise<RedirectingServer> {
  const seen = { connections: 0, said: false };
  let followed = 0;
  const other = await listening((socket) => {
    followed += 1;
    socket.on("error", () => {}).resume();
  });
  const elsewhere = `rtmp://127.0.0.1:${(other.address() as AddressInfo).port}/live`;
  const server = await listening((socket) => {
    seen.connections += 1;
    serve(socket, form, elsewhere, () => {
      seen.said = true;
    });
  });
  return {
    rtmp: `rtmp://127.0.0.1:${(server.address() as AddressInfo).port}/live`,
    seen,
    followed: () => followed,
    close() {
      for (const each of [server, other]) each.close();
    },
  };
}

function serve(socket: Socket, form: Form, elsewhere: string, said: () => void): void {
  let input = Buffer.alloc(0);
  let isShaken = false;
  const answered = new Set<string>();
  const send = (kind: number, stream: number, payload: Buffer) => socket.write(message(kind, stream, payload));
  const command = (stream: number, name: string, ...values: readonly Amf[]) =>
    send(COMMAND, stream, Buffer.concat([name, ...values].map(amf)));
  const ex = { code: 302, redirect: elsewhere };
  const rejected = { level: "error", code: "NetConnection.Connect.Rejected", description: "Go elsewhere", ex };
  const end = () => {
    said();
    setTimeout(() => socket.destroy(), CLOSING_MS).unref();
  };
  const handlers: Readonly<Record<string, (transaction: number) => void>> = {
    connect(transaction) {
      send(SET_CHUNK_SIZE, 0, uint32(CHUNK_BYTES));
      if (form === "302 to connect") {
        command(0, "_error", transaction, null, rejected);
        return end();
      }
      const success = { level: "status", code: "NetConnection.Connect.Success", description: "Connected" };
      command(0, "_result", transaction, { fmsVer: "FMS/3,0,1,123", capabilities: 31, capsEx: 1 }, success);
    },
    releaseStream: (transaction) => void command(0, "_result", transaction, null, null),
    FCPublish: (transaction) => void command(0, "_result", transaction, null, null),
    createStream: (transaction) => void command(0, "_result", transaction, null, 1),
    publish() {
      if (form === "302 to publish") {
        command(1, "onStatus", 0, null, rejected);
        return end();
      }
      command(1, "onStatus", 0, null, { level: "status", code: "NetStream.Publish.Start", description: "Go on" });
      const code = "NetConnection.Connect.ReconnectRequest";
      command(0, "onStatus", 0, null, { level: "status", code, description: "Go on", tcUrl: elsewhere });
      said();
    },
  };
  socket.on("error", () => {});
  socket.on("data", (bytes: Buffer) => {
    if (answered.has("publish")) return;
    input = Buffer.concat([input, bytes]);
    if (!isShaken && input.length >= C0_C1_BYTES) {
      isShaken = true;
      // S0, S1, and C1 as S2 (RTMP 5.2).
      socket.write(Buffer.concat([Buffer.from([3]), Buffer.alloc(1536), input.subarray(1, C0_C1_BYTES)]));
    }
    if (input.length < HANDSHAKE_BYTES) return;
    for (const [name, handle] of Object.entries(handlers)) {
      // A command is at the start of its message, so no chunk header is within it.
      const at = input.indexOf(amf(name), HANDSHAKE_BYTES);
      const number = at + 3 + name.length + 1;
      if (at === -1 || answered.has(name) || input.length < number + 8) continue;
      answered.add(name);
      handle(input.readDoubleBE(number));
    }
  });
}

async function listening(serveOne: (socket: Socket) => void): Promise<Server> {
  const server = createServer(serveOne);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** One chunk with a full header (RTMP 5.3.1.2.1). */
function message(kind: number, stream: number, payload: Buffer): Buffer {
  const header = Buffer.from([kind === COMMAND ? 3 : 2, 0, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0]);
  header.writeUIntBE(payload.length, 4, 3);
  header.writeUInt32LE(stream, 8);
  return Buffer.concat([header, payload]);
}

type Amf = string | number | null | { readonly [key: string]: Amf };

function amf(value: Amf): Buffer {
  if (value === null) return Buffer.from([5]);
  if (typeof value === "string") return Buffer.concat([Buffer.from([2]), text(value)]);
  if (typeof value === "object") {
    const properties = Object.entries(value).flatMap(([key, of]) => [text(key), amf(of)]);
    return Buffer.concat([Buffer.from([3]), ...properties, Buffer.from([0, 0, 9])]);
  }
  const number = Buffer.alloc(9);
  number.writeDoubleBE(value, 1);
  return number;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
