// The ports on which other processes of the service reach this one: one for calls, and one for plays where the RTMP
// port may lead to another process. With a shared database as configured; with a file store only on this machine, and
// only while an upgrade needs it.
import { lookup } from "node:dns/promises";
import type { Config } from "../config.ts";
import { PortTaken } from "../errors.ts";
import { lastPort } from "../listen/free-ports.ts";
import { type Listening, listen } from "../listen/http-port.ts";
import type { AcceptingMedia } from "../media/accepting.ts";
import { nodeAddressOf } from "../own-addresses.ts";
import { reasonOf } from "../reason.ts";

const LOOPBACK = "127.0.0.1";

export interface NodePorts {
  /** Opens the port for calls, unless it is open. Rejects with `PortTaken`. */
  open(): Promise<void>;
  /** The same for plays, for as long as this process runs. */
  openPulls(): Promise<void>;
  /** As in `NodeStatus`. */
  readonly channel: string | null;
  readonly pullPort: number | null;
  stop(): Promise<void>;
}

/** `isSuccessor`: another process uses the configured port, and the next free one is taken. */
export function createNodePorts(deps: {
  readonly config: Config;
  readonly fetch: Parameters<typeof listen>[0];
  readonly accepting: () => AcceptingMedia;
  readonly isSuccessor: boolean;
}): NodePorts {
  const { config, fetch, accepting, isSuccessor } = deps;
  const isFile = config.databaseUrl === null;
  const host = isFile ? LOOPBACK : config.node.host;
  const port = isFile ? 0 : config.node.port;
  let calls: Listening | null = null;
  let pullPort: number | null = null;

  const listenAt = (at: number) => listen(fetch, { name: "node.port", host, port: at });

  return {
    async open() {
      calls ??= isSuccessor ? await firstFree(port, listenAt) : await listenAt(port);
    },
    async openPulls() {
      const { address } = await lookup(host);
      pullPort ??= await firstFree(port, async (at) => acceptPulls(accepting(), address, at));
    },
    get channel() {
      if (calls === null) return null;
      return isFile ? `http://${LOOPBACK}:${calls.port}` : nodeAddressOf(config, calls);
    },
    get pullPort() {
      return pullPort;
    },
    stop: async () => await calls?.stop(),
  };
}

function acceptPulls(accepting: AcceptingMedia, host: string, port: number): number {
  try {
    return accepting.acceptPulls(host, port);
  } catch (cause) {
    throw new PortTaken(`cannot listen on ${host}:${port} for other nodes: ${reasonOf(cause)}`, { cause });
  }
}

/** The result of `open` for the first free port from `port` on; for any free one when that is 0. Rejects with
 *  `PortTaken`. */
async function firstFree<T>(port: number, open: (port: number) => Promise<T>): Promise<T> {
  for (let at = port; ; at += 1) {
    try {
      return await open(at);
    } catch (error) {
      if (!(error instanceof PortTaken)) throw error;
      if (at < lastPort(port)) continue;
      const by = "by former processes of this service, or by other programs";
      throw new PortTaken(`node.port: every port from ${port} to ${at} is in use, ${by}`, { cause: error });
    }
  }
}
