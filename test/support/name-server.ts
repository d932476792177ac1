// A DNS server with the faults of authoritative ones: it answers, reports that there is nothing, fails, or does not
// answer (RFC 1035).
import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";

const TYPE_A = 1;
const TYPE_AAAA = 28;
const HEADER_BYTES = 12;
/** QR, RD and RA. */
const ANSWER = 0x8180;
const FAILED = 2;
const NOT_THERE = 3;

/** Its answer for a name: IPv4 addresses, or a fault. */
export type Said = readonly string[] | "missing" | "failing" | "silent";

export interface NameServer {
  /** For `setServers`. */
  readonly address: string;
  /** Names that were queried, A records only. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** `say` gives the answer to each query; answers are valid for `ttl` seconds. */
export async function startNameServer(say: (name: string) => Said, ttl = 60): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (query, from) => {
    const { name, type, end } = question(query);
    if (type === TYPE_A) asked.push(name);
    const said = say(name);
    if (said === "silent") return;
    const addresses = typeof said === "string" || type === TYPE_AAAA ? [] : said;
    const header = Buffer.from(query.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(ANSWER | (said === "missing" ? NOT_THERE : said === "failing" ? FAILED : 0), 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    socket.send(
      Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...addresses.map(record)]),
      from.port,
      from.address,
    );
  });
  function record(address: string): Buffer {
    const bytes = Buffer.alloc(16);
    // A pointer to the question's name, A, IN.
    bytes.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
    bytes.writeUInt16BE(TYPE_A, 2);
    bytes.writeUInt16BE(1, 4);
    bytes.writeUInt32BE(ttl, 6);
    bytes.writeUInt16BE(4, 10);
    bytes.set(address.split(".").map(Number), 12);
    return bytes;
  }
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    asked,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function question(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  while ((query[at] ?? 0) > 0) {
    const length = query[at] ?? 0;
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}
