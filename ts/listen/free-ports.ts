// The ports of a process beside another of the same service: each takes the next free ones, counting up from the
// configured port, so that they grow in number as former processes stay.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/** How many ports a process tries, starting at the configured one: more than the processes that fit into the memory of
 *  one machine. */
const PORTS_TRIED = 1_000;

/** The last of them. 0: any free port. */
export const lastPort = (port: number): number => (port === 0 ? 0 : Math.min(65_535, port + PORTS_TRIED - 1));

/** Ports in a row. */
export interface PortNeed {
  readonly host: string;
  readonly from: number;
  readonly count: number;
  /** Whether UDP is needed as well as TCP. */
  readonly hasUdp: boolean;
}

/** Whether that many are free. They may be taken before they are opened. */
export async function arePortsFree({ host, from, count, hasUdp }: PortNeed): Promise<boolean> {
  if (from === 0) return true;
  for (let at = from, free = 0; at <= lastPort(from); at += 1) {
    const isFree = (await isTcpFree(host, at)) && (!hasUdp || (await isUdpFree(host, at)));
    free = isFree ? free + 1 : 0;
    if (free === count) return true;
  }
  return false;
}

function isTcpFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", (error) => resolve(!isTaken(error)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function isUdpFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    socket.once("error", (error) => {
      socket.close();
      resolve(!isTaken(error));
    });
    socket.bind({ address: host, port, exclusive: true }, () => socket.close(() => resolve(true)));
  });
}

/** Any other error is reported by the process that opens the port. */
const isTaken = (error: NodeJS.ErrnoException): boolean => error.code === "EADDRINUSE";
