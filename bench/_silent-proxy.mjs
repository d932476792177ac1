// A TCP proxy in front of PostgreSQL that delays what passes, and can swallow it without closing anything, as when a
// machine loses power or a firewall forgets its connections.
import { connect, createServer } from "node:net";

/** @typedef {{
 *    readonly port: number;
 *    silence(): void;
 *    forget(): void;
 *    close(): void;
 *  }} SilentProxy */

/** `socket`: path of the server's socket; `delayMs`: of each packet from the client.
 *  @type {(socket: string, delayMs?: number) => Promise<SilentProxy>} */
export async function startSilentProxy(socket, delayMs = 0) {
  const sockets = new Set();
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
    ]) {
      sockets.add(from);
      const pass = (act) => () => {
        if (!isLost()) act();
      };
      const later = (act) => (waitMs === 0 ? act() : setTimeout(act, waitMs));
      from.setNoDelay(true);
      from.on("data", (bytes) => later(pass(() => to.write(bytes))));
      from.on("end", () => later(pass(() => to.end())));
      from.on(
        "error",
        pass(() => to.destroy()),
      );
      from.on("close", () => {
        sockets.delete(from);
        pass(() => to.destroy())();
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
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
