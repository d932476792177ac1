// A TCP proxy in front of PostgreSQL that delays what passes, and can swallow it without closing anything, as when a
// machine loses power or a firewall forgets its connections.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface SilentProxy {
  readonly port: number;
  /** Nothing passes any more, on existing connections and on new ones. */
  silence(): void;
  /** Nothing passes any more on the connections that exist now; new ones work. */
  forget(): void;
  close(): void;
}

/** `socket`: path of the server's socket; `delayMs`: of each packet from the client. */
export async function startSilentProxy(socket: string, delayMs = 0): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  let silentUpTo = -1;
  let isSilent = false;
  let count = 0;
  const server = createServer((client) => {
    const place = count;
    count += 1;
    const isLost = () => isSilent || place <= silentUpTo;
    const ours = connect(socket);
    for (const [from, to, waitMs] of [
      [client, ours, delayMs],
      [ours, client, 0],
    ] as const) {
      sockets.add(from);
      const pass = (act: () => void) => () => {
        if (!isLost()) act();
      };
      const later = (act: () => void) => (waitMs === 0 ? act() : setTimeout(act, waitMs));
      from.setNoDelay(true);
      from.on("data", (bytes) => later(pass(() => void to.write(bytes))));
      from.on("end", () => later(pass(() => void to.end())));
      from.on(
        "error",
        pass(() => void to.destroy()),
      );
      from.on("close", () => {
        sockets.delete(from);
        pass(() => void to.destroy())();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      isSilent = true;
    },
    forget() {
      silentUpTo = count - 1;
    },
    close() {
      server.close();
      for (const each of sockets) each.destroy();
    },
  };
}
