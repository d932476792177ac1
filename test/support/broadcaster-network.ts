// A broadcaster's own network, which fails in mid-publish like a Wi-Fi or a mobile network: nothing passes in either
// direction, without FIN, RST or ICMP. A network namespace where the machine allows one; elsewhere a TCP proxy that
// stops forwarding, which does not support WHIP.
import { execFileSync } from "node:child_process";
import { createConnection, createServer, type Socket } from "node:net";
import { type Child, start, until } from "./child.ts";

/** `link`: the broadcaster's own interface is down, which its programs can notice; `path`: a more distant link is. */
export type Cut = "link" | "path";

export interface BroadcasterNetwork {
  /** An address of this machine at which a service is reachable from every such network. */
  readonly host: string;
  /** Whether WHIP works as well. */
  readonly hasUdp: boolean;
  /** Words to put in front of a command that runs in this network. */
  readonly within: readonly string[];
  /** The same RTMP URL as seen from that network. */
  rtmp(url: string): Promise<string>;
  cut(how: Cut): void;
  restore(): void;
  close(): Promise<void>;
}

/** Belongs to no interface: what is sent there is lost. */
const NOBODY = "02:00:00:00:de:ad";
let opened = 0;

export async function openBroadcasterNetwork(): Promise<BroadcasterNetwork> {
  const holder = start("unshare", ["--net", "sleep", "infinity"]);
  try {
    return await inNamespace(holder);
  } catch {
    holder.kill("SIGKILL");
    return behindProxy();
  }
}

/** Creates a veth pair with one end in the namespace that `holder` keeps; everything disappears when it ends. */
async function inNamespace(holder: Child): Promise<BroadcasterNetwork> {
  opened += 1;
  const name = `hg${process.pid}-${opened}`;
  const [ours, theirs] = [`${name}a`, `${name}b`];
  // From the block for benchmarking networks (RFC 2544), four addresses each.
  const block = Math.floor(Math.random() * 0x7fff) * 4;
  const address = (at: number) => `198.${18 + (block >> 16)}.${(block >> 8) & 255}.${(block & 255) + at}`;
  const [host, broadcaster] = [address(1), address(2)];
  const within = ["nsenter", "--target", String(holder.pid), "--net"];
  const here = (...words: string[]) => void execFileSync("ip", words, { stdio: "pipe" });
  const there = (...words: string[]) => {
    const [program = "", ...before] = within;
    execFileSync(program, [...before, "ip", ...words], { stdio: "pipe" });
  };
  await untilApart(holder.pid);
  here("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", String(holder.pid));
  here("address", "add", `${host}/30`, "dev", ours);
  here("link", "set", ours, "up");
  there("address", "add", `${broadcaster}/30`, "dev", theirs);
  const join = () => {
    there("link", "set", theirs, "up");
    there("route", "add", "default", "via", host);
  };
  there("link", "set", "lo", "up");
  join();
  let cutBy: Cut | null = null;
  return {
    ...{ host, within, hasUdp: true },
    rtmp: async (url) => url,
    cut(how) {
      cutBy = how;
      if (how === "link") return there("link", "set", theirs, "down");
      there("neighbour", "replace", host, "lladdr", NOBODY, "dev", theirs, "nud", "permanent");
      here("neighbour", "replace", broadcaster, "lladdr", NOBODY, "dev", ours, "nud", "permanent");
    },
    restore() {
      if (cutBy === "link") join();
      if (cutBy === "path") {
        there("neighbour", "delete", host, "dev", theirs);
        here("neighbour", "delete", broadcaster, "dev", ours);
      }
      cutBy = null;
    },
    async close() {
      holder.kill("SIGKILL");
      await holder.exit;
    },
  };
}

/** Waits until the holder has a namespace of its own. */
async function untilApart(pid: number): Promise<void> {
  const namespaceOf = (process_: string) => execFileSync("readlink", [`/proc/${process_}/ns/net`]).toString();
  const ours = namespaceOf("self");
  await until("a network namespace", () => namespaceOf(String(pid)) !== ours, 5_000);
}

function behindProxy(): BroadcasterNetwork {
  const sockets = new Set<Socket>();
  const closings: (() => void)[] = [];
  let isDark = false;
  const pipe = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on("data", (bytes) => to.write(bytes));
    // What happens while it is cut is delivered afterwards.
    const over = () => (isDark ? void waiting.push(() => to.destroy()) : void to.destroy());
    from.on("error", () => {}).on("close", over);
  };
  const waiting: (() => void)[] = [];
  return {
    ...{ host: "127.0.0.1", within: [], hasUdp: false },
    async rtmp(url) {
      const { hostname, port, pathname } = new URL(url);
      const server = createServer((client) => {
        const service = createConnection({ host: hostname, port: Number(port) });
        pipe(client, service);
        pipe(service, client);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      closings.push(() => server.close());
      const address = server.address();
      return `rtmp://127.0.0.1:${typeof address === "object" ? address?.port : 0}${pathname}`;
    },
    cut() {
      isDark = true;
      for (const socket of sockets) socket.pause();
    },
    restore() {
      isDark = false;
      for (const act of waiting.splice(0)) act();
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      for (const act of closings) act();
    },
  };
}
