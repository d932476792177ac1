// `headgate webhook simulate`: a simulated customer on this machine that answers as configured, verifies signatures
// when it has the secret, and prints each event. For testing, not for use on the Internet.
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { verify, WebhookRefused } from "../../client/webhook.ts";
import { selfSigned } from "./self-signed.ts";

/** Longest body that is read, bytes: events are far shorter. */
const BODY_LIMIT_BYTES = 65_536;
const CERTIFICATE_DAYS = 30;
const SIGNATURE_IS = { good: "signature good", none: "signature not checked" } as const;

export interface Simulation {
  readonly port: number;
  /** The response, and the delay before it, ms. */
  readonly status: number;
  readonly delayMs: number;
  /** Text of the response; the first line of a 403 reaches the broadcaster. */
  readonly reason: string;
  /** `whsec_…`, or null for no verification. */
  readonly secret: string | null;
  /** Where to write the certificate that the gateway must trust. */
  readonly certFile: string;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly print: (line: string) => void;
}

/** Serves until `close`. */
export async function simulate(simulation: Simulation): Promise<{ readonly url: string; close(): void }> {
  const { cert, key } = selfSigned(simulation.clock.now(), CERTIFICATE_DAYS);
  writeFileSync(simulation.certFile, cert);
  const server = createServer({ cert, key }, (request, response) => {
    answer(simulation, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(simulation.port, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}/`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(simulation: Simulation, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { clock, print, secret, delayMs, reason } = simulation;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_LIMIT_BYTES) {
      response.writeHead(413).end();
      return;
    }
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const said = await signatureOf(request, body, secret, clock.now());
  const status = said.forged ? 401 : simulation.status;
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(said.forged ? "" : reason);
  const id = String(request.headers["webhook-id"] ?? "no webhook-id");
  print(`${new Date(clock.now()).toISOString()} ${status} ${said.words} ${id} ${body.toString("utf8")}`);
}

async function signatureOf(
  request: IncomingMessage,
  body: Uint8Array,
  secret: string | null,
  now: number,
): Promise<{ readonly forged: boolean; readonly words: string }> {
  if (secret === null) return { forged: false, words: SIGNATURE_IS.none };
  try {
    await verify(request.headers, body, secret, { now });
    return { forged: false, words: SIGNATURE_IS.good };
  } catch (error) {
    if (!(error instanceof WebhookRefused)) throw error;
    return { forged: true, words: `refused (${error.code})` };
  }
}
