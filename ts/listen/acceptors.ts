// Accepts more connections from one listening socket. Since 1.45 libuv accepts one in each turn of the event loop:
// while turns take ten milliseconds, because publishes are being set up, a crowd of a hundred would wait in the kernel
// for a second. Each further handle on the same socket accepts one more.
import type { Server as HttpServer } from "node:http";
import { Server as HttpsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { ownDescriptorLimit } from "../capacity/figures.ts";

/** Handles in addition to the server's own; fewer where descriptors are scarce. */
const ACCEPTORS = 15;
const DESCRIPTORS_FOR_EACH = 64;

export interface Acceptors {
  /** Stops accepting; resolves when the connections accepted through these handles have ended, too. */
  close(): Promise<void>;
}

/** Opens them for a `server` that listens on `descriptor`, as many as the system allows; together they hold at most its
 *  present `maxConnections`. */
export async function openAcceptors(
  server: HttpServer | HttpsServer,
  descriptor: number,
  duplicate: (descriptor: number) => number,
): Promise<Acceptors> {
  const limit = server.maxConnections;
  let open = 0;
  let taken = 0;
  const counted = new WeakSet<Socket>();
  server.prependListener("connection", (socket: Socket) => {
    // A request that offered another protocol is served again on its connection (web-sockets.ts).
    if (counted.has(socket)) return;
    counted.add(socket);
    open += 1;
    socket.once("close", () => {
      open -= 1;
    });
  });

  function count(change: 1 | -1): void {
    taken += change;
    // To Node 20, 0 means no limit; with a negative number every version closes further connections.
    server.maxConnections = taken >= limit ? -1 : limit - taken;
  }

  function take(socket: Socket): void {
    if (open >= limit) {
      socket.destroy();
      return;
    }
    count(1);
    socket.once("close", () => count(-1));
    server.emit("connection", socket);
  }

  // The same options as for the server's own connections, by Node's defaults.
  const options = { allowHalfOpen: !(server instanceof HttpsServer), noDelay: true };
  const acceptors: Server[] = [];
  const descriptors = ownDescriptorLimit() ?? Number.POSITIVE_INFINITY;
  const handles = Math.min(ACCEPTORS, Math.floor(descriptors / DESCRIPTORS_FOR_EACH) - 1);
  try {
    for (let at = 0; at < handles; at += 1) {
      const acceptor = createServer(options, take);
      await new Promise<void>((listening, refused) => {
        acceptor.once("error", refused).listen({ fd: duplicate(descriptor) }, listening);
      });
      acceptors.push(acceptor);
    }
  } catch {
    // No descriptor is left: the handles already open have to do.
  }
  return {
    async close() {
      await Promise.all(acceptors.map((acceptor) => new Promise((closed) => acceptor.close(closed))));
    },
  };
}
