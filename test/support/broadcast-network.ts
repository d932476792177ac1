// The network between a page and the service, controlled by the test: HTTPS in front of the service's HTTP, a UDP hop
// before its media port. While it is cut nothing passes; waiting requests continue once it is mended, as over TCP.
import { createSocket, type Socket } from "node:dgram";
import { request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { testCertificates } from "./customer.ts";

export interface BroadcastNetwork {
  /** `https://127.0.0.1:…`, to use instead of the service's own URL. */
  readonly https: string;
  /** Stops all traffic. */
  cut(): void;
  mend(): void;
  /** Breaks every path that a browser has at present for good, like those of an interface that is gone; new ones
   *  work. */
  losePaths(): void;
  /** Sends requests to a service that was restarted. */
  leadTo(service: string): void;
  close(): Promise<void>;
}

/** `service` is `http://127.0.0.1:…`. Without `hasMedia` media bypasses it; with it, it serves one broadcast at a
 *  time. */
export async function startBroadcastNetwork(
  service: string,
  options: { readonly hasMedia?: boolean } = {},
): Promise<BroadcastNetwork> {
  let target = service;
  let whole: Promise<void> = Promise.resolve();
  let mend = () => {};
  let isCut = false;
  const hop = options.hasMedia ? await openHop(() => isCut) : null;

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body: Buffer[] = [];
    for await (const part of incoming) body.push(part as Buffer);
    await whole;
    if (outgoing.destroyed) return;
    const { host } = new URL(https);
    const headers = { ...incoming.headers, host };
    const passed = forward(target + incoming.url, { method: incoming.method, headers }, async (answer) => {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      await whole;
      let text: Buffer = Buffer.concat(parts);
      if (hop !== null && answer.headers["content-type"] === "application/sdp") text = hop.lead(text);
      const { "content-length": _, location, ...rest } = answer.headers;
      const place = location === undefined ? {} : { location: location.replace(/^https?:\/\/[^/]*/, https) };
      outgoing.writeHead(answer.statusCode ?? 502, { ...rest, ...place }).end(text);
    });
    passed.on("error", () => outgoing.destroy());
    passed.end(Buffer.concat(body));
  };
  const { key, cert } = testCertificates();
  const server = createServer({ key, cert }, (incoming, outgoing) => void serve(incoming, outgoing).catch(() => {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const https = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    https,
    cut() {
      isCut = true;
      whole = new Promise((resolve) => {
        mend = resolve;
      });
    },
    mend() {
      isCut = false;
      mend();
    },
    losePaths: () => hop?.losePaths(),
    leadTo(service) {
      target = service;
    },
    async close() {
      mend();
      hop?.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Hop {
  /** The answer with this hop as its only candidate. */
  lead(answer: Buffer): Buffer;
  losePaths(): void;
  close(): void;
}

async function openHop(isCut: () => boolean): Promise<Hop> {
  const front = createSocket("udp4");
  await new Promise<void>((resolve) => front.bind(0, "127.0.0.1", resolve));
  const backs = new Map<string, Socket>();
  const lost = new Set<Socket>();
  let media = { host: "", port: 0 };
  front.on("message", (datagram, client) => {
    if (isCut()) return;
    const key = `${client.address}:${client.port} ${media.port}`;
    let back = backs.get(key);
    if (back === undefined) {
      const socket = createSocket("udp4");
      back = socket;
      back.on("message", (answer) => {
        if (!isCut() && !lost.has(socket)) front.send(answer, client.port, client.address);
      });
      // The service may be gone.
      back.on("error", () => {});
      backs.set(key, back);
    }
    if (!lost.has(back)) back.send(datagram, media.port, media.host);
  });
  return {
    losePaths() {
      for (const back of backs.values()) lost.add(back);
    },
    lead(answer) {
      const text = answer.toString();
      const found = /^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host/m.exec(text);
      if (found === null) return answer;
      media = { host: found[1] ?? "", port: Number(found[2]) };
      const ours = `a=candidate:1 1 udp 2130706431 127.0.0.1 ${front.address().port} typ host\r\n`;
      const sections = text.split(/^(?=m=)/m).map((section) => {
        let line = ours;
        return section.replaceAll(/^a=candidate:.*\r\n/gm, () => {
          const written = line;
          line = "";
          return written;
        });
      });
      return Buffer.from(sections.join(""));
    },
    close() {
      front.close();
      for (const back of backs.values()) back.close();
    },
  };
}
