// A DNS server with the faults of authoritative ones: it answers, reports that there is nothing, fails, or does not
// answer (RFC 1035).
import { createSocket } from "node:dgram";
import { type AddressInfo, isIP } from "node:net";

const TYPE_A = 1;
const TYPE_AAAA = 28;
const HEADER_BYTES = 12;
/** QR, RD and RA. */
const ANSWER = 0x8180;
const FAILED = 2;
const NOT_THERE = 3;

export type QueryType = "A" | "AAAA";
/** Its answer for a name: addresses, of which it sends those of the type in question, or a fault. */
export type Said = readonly string[] | "missing" | "failing" | "silent";

export interface NameServer {
  /** For `setServers`. */
  readonly address: string;
  /** Names that were queried, A records only. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** `say` gives the answer to each query; answers are valid for `ttl` seconds. */
export async function startNameServer(
  say: (name: string, type: QueryType) => Said | Promise<Said>,
  ttl = 60,
): Promise<NameServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", async (query, from) => {
    const { name, type, end } = question(query);
    if (type === TYPE_A) asked.push(name);
    const said = await say(name, type === TYPE_A ? "A" : "AAAA");
    if (said === "silent") return;
    const family = type === TYPE_A ? 4 : 6;
    const addresses = typeof said === "string" ? [] : said.filter((address) => isIP(address) === family);
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
    const wire = wireOf(address);
    const bytes = Buffer.alloc(12);
    // A pointer to the question's name, the type, IN.
    bytes.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
    bytes.writeUInt16BE(wire.length === 4 ? TYPE_A : TYPE_AAAA, 2);
    bytes.writeUInt16BE(1, 4);
    bytes.writeUInt32BE(ttl, 6);
    bytes.writeUInt16BE(wire.length, 10);
    return Buffer.concat([bytes, wire]);
  }
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    asked,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** An IPv6 address must contain `::`. */
function wireOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [before = "", after = ""] = address.split("::").map((groups) => hexOf(groups));
  return Buffer.from(before.padEnd(32 - after.length, "0") + after, "hex");
}

function hexOf(groups: string): string {
  return groups
    .split(":")
    .map((group) => (group === "" ? "" : group.padStart(4, "0")))
    .join("");
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
