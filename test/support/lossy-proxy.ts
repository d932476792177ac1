// A proxy between a browser and the service: an HTTP hop that puts its own address into the answer, and a UDP hop that
// loses, delays and reorders datagrams.
import { createSocket, type Socket } from "node:dgram";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Extra delay of a datagram that is overtaken, ms. */
const OVERTAKEN_BY_MS = 15;

export interface Network {
  readonly loss: number;
  /** One-way delay, ms. */
  readonly delay: number;
  readonly reorder: number;
}

export interface LossyProxy {
  /** Publish to this URL instead of the service's. */
  readonly http: string;
  /** Datagrams lost so far, in both directions. */
  lost(): number;
  /** Largest delay of a datagram beyond the configured one, ms: if a busy machine delays packets too much, the test
   *  had a different network. */
  lateMs(): number;
  close(): Promise<void>;
}

/** Every datagram has the same chances (percent), with the same random sequence every time. One media port of the
 *  service at a time. */
export async function startLossyProxy(service: string, { loss, delay, reorder }: Network): Promise<LossyProxy> {
  const front = await bind();
  const backs = new Map<string, Socket>();
  let target: { readonly host: string; readonly port: number } | null = null;
  let lost = 0;
  let isClosed = false;
  let lateMs = 0;
  let dice = 1;
  const happens = (percent: number) => {
    dice = (Math.imul(dice, 1_664_525) + 1_013_904_223) >>> 0;
    return dice / 2 ** 32 < percent / 100;
  };
  const pass = (send: () => void) => {
    if (happens(loss)) {
      lost += 1;
      return;
    }
    const ms = delay + (happens(reorder) ? OVERTAKEN_BY_MS : 0);
    if (ms === 0) return send();
    const due = performance.now() + ms;
    setTimeout(() => {
      lateMs = Math.max(lateMs, performance.now() - due);
      if (!isClosed) send();
    }, ms);
  };

  front.on("message", (datagram, client) => {
    if (target === null) return;
    const { host, port } = target;
    const key = `${client.address}:${client.port}`;
    let back = backs.get(key);
    if (back === undefined) {
      back = createSocket("udp4");
      back.on("message", (answer) => {
        pass(() => front.send(answer, client.port, client.address));
      });
      backs.set(key, back);
    }
    const through = back;
    pass(() => through.send(datagram, port, host));
  });

  // A caller or a service that goes away costs its request.
  const server = createServer((request, response) => void forward(request, response).catch(() => response.destroy()));

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const type = request.headers["content-type"];
    const passed = await fetch(service + request.url, {
      method: request.method ?? "GET",
      ...(type === undefined ? {} : { headers: { "content-type": type } }),
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    let body = await passed.text();
    const candidate = /^(a=candidate:\S+ 1 udp \d+) (\S+) (\d+) typ host/m.exec(body);
    if (candidate !== null) {
      target = { host: candidate[2] ?? "", port: Number(candidate[3]) };
      body = body.replace(candidate[0], `${candidate[1]} 127.0.0.1 ${front.address().port} typ host`);
    }
    for (const name of ["content-type", "location", "access-control-allow-origin", "access-control-expose-headers"]) {
      const value = passed.headers.get(name);
      if (value !== null) response.setHeader(name, value);
    }
    for (const name of ["access-control-allow-methods", "access-control-allow-headers"]) {
      const value = passed.headers.get(name);
      if (value !== null) response.setHeader(name, value);
    }
    response.writeHead(passed.status).end(body);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    http: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lost: () => lost,
    lateMs: () => Math.round(lateMs),
    async close() {
      isClosed = true;
      front.close();
      for (const back of backs.values()) back.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bind(): Promise<Socket> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket;
}
