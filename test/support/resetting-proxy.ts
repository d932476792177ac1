// A TCP proxy in front of one of our ports that can reset every connection.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface ResettingProxy {
  readonly port: number;
  /** Resets both sides of every connection; new ones are accepted. */
  drop(): void;
  /** Resets both sides of every connection, and accepts no more. */
  reset(): void;
}

/** Listens on `port`, or on any free one. */
export async function startResettingProxy(target: number, port = 0): Promise<ResettingProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const ours = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [client, ours],
      [ours, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy()).pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const drop = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
    sockets.clear();
  };
  return {
    drop,
    port: (server.address() as AddressInfo).port,
    reset() {
      server.close();
      drop();
    },
  };
}
