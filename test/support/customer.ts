// A customer's HTTPS endpoint for tests, with a throw-away CA. It records every request byte by byte and answers as
// configured.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";

/** How long `received` waits before it fails the test, ms. */
const RECEIVE_LIMIT_MS = 5_000;

export interface CustomerRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The raw body, one character per byte. */
  readonly body: string;
  /** Value of `call`, as read by a parser that takes the last of repeated fields. */
  readonly call: string;
  /** Number of the TCP connection that it came on, from 1. */
  readonly connection: number;
  readonly tlsSessionReused: boolean;
}

export type CustomerAnswer =
  | {
      readonly status: number;
      readonly body?: string | Buffer;
      readonly headers?: Readonly<Record<string, string>>;
      /** Writes the head and never ends the body. */
      readonly stallBody?: boolean;
      /** Answers so much later. */
      readonly afterMs?: number;
    }
  /** Never answers. */
  | "hang"
  /** Resets the connection. */
  | "reset";

type Answering = (request: CustomerRequest) => CustomerAnswer | Promise<CustomerAnswer>;

export interface Customer {
  readonly url: string;
  /** PEM of the CA to trust. */
  readonly ca: string;
  readonly requests: readonly CustomerRequest[];
  /** TCP connections accepted so far. */
  connections(): number;
  /** Requests with this `call`. */
  calls(call: string): readonly CustomerRequest[];
  /** The `count`th request (from 1) with this `call`, once it has arrived. */
  received(call: string, count?: number): Promise<CustomerRequest>;
  /** Sets the answer to further requests; initially 200. */
  answer(next: CustomerAnswer | Answering): void;
  close(): Promise<void>;
}

interface Certificates {
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
  /** Another certificate for the same key and names. */
  readonly renewed: string;
}

let certificates: Certificates | null = null;

/** One CA and one certificate for localhost and 127.0.0.1 per test process. */
export function testCertificates(): Certificates {
  if (certificates !== null) return certificates;
  const folder = mkdtempSync(join(tmpdir(), "headgate-ca-"));
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  try {
    openssl(
      "req",
      "-x509",
      ...newKey,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-days",
      "2",
      "-subj",
      "/CN=Headgate test CA",
    );
    openssl("req", ...newKey, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost");
    writeFileSync(join(folder, "extensions"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions"];
    openssl("x509", "-req", "-in", "request.pem", "-out", "cert.pem", ...signing);
    openssl("x509", "-req", "-in", "request.pem", "-out", "renewed.pem", ...signing);
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    certificates = { ca: read("ca.pem"), key: read("key.pem"), cert: read("cert.pem"), renewed: read("renewed.pem") };
    return certificates;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a customer on a free port of 127.0.0.1. Close it at the end of the test. */
export async function startCustomer(): Promise<Customer> {
  const { ca, key, cert } = testCertificates();
  const requests: CustomerRequest[] = [];
  const numbers = new WeakMap<object, number>();
  const waiting = new Set<() => void>();
  let connections = 0;
  let answering: Answering = () => ({ status: 200 });

  const server = createServer({ key, cert, keepAliveTimeout: 60_000 }, (incoming, response) => {
    void record(incoming).then(async (request) => {
      if (request === null) return;
      requests.push(request);
      for (const wake of [...waiting]) wake();
      respond(await answering(request), response);
    });
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    connections += 1;
    numbers.set(socket, connections);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  /** Null when the service ends or is killed before the whole request has arrived. */
  async function record(incoming: IncomingMessage): Promise<CustomerRequest | null> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return null;
    }
    const body = Buffer.concat(chunks).toString("latin1");
    return {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body,
      call: new URLSearchParams(body).getAll("call").at(-1) ?? "",
      connection: numbers.get(incoming.socket) ?? 0,
      tlsSessionReused: (incoming.socket as TLSSocket).isSessionReused(),
    };
  }

  const calls = (call: string) => requests.filter((request) => request.call === call);
  return {
    url: `https://localhost:${port}/hook?key=webhook-secret`,
    ca,
    requests,
    connections: () => connections,
    calls,
    received(call, count = 1) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = calls(call)[count - 1];
          if (found === undefined) return;
          waiting.delete(look);
          clearTimeout(timer);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`no ${call} number ${count} within ${RECEIVE_LIMIT_MS} ms`));
        }, RECEIVE_LIMIT_MS);
        waiting.add(look);
        look();
      });
    },
    answer(next) {
      answering = typeof next === "function" ? next : () => next;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function respond(answer: CustomerAnswer, response: ServerResponse): void {
  if (answer === "hang") return;
  if (answer === "reset") {
    response.socket?.destroy();
    return;
  }
  if (answer.afterMs) return void setTimeout(respond, answer.afterMs, { ...answer, afterMs: 0 }, response);
  response.writeHead(answer.status, answer.headers);
  if (answer.stallBody) response.write(answer.body ?? "");
  else response.end(answer.body);
}
