// More connections from one listening socket. libuv takes one in each turn of the event loop since 1.45: while turns take ten
// milliseconds, because publishes are set up, a crowd of a hundred would wait in the kernel for a second. Further handles on
// the same socket take one each.
import type { Server as HttpServer } from "node:http";
import { Server as HttpsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { ownDescriptorLimit } from "../capacity/figures.ts";

/** Handles besides the server's own; fewer where descriptors are few. */
const ACCEPTORS = 15;
const DESCRIPTORS_FOR_EACH = 64;

export interface Acceptors {
  /** Takes no more; resolves when the connections that came by them have ended, too. */
  close(): Promise<void>;
}

/** Opens them for a `server` that listens at `descriptor`, as many as the system allows; all together hold no more than its
 *  `maxConnections` of now. */
export async function openAcceptors(
  server: HttpServer | HttpsServer,
  descriptor: number,
  duplicate: (descriptor: number) => number,
): Promise<Acceptors> {
  const limit = server.maxConnections;
  let open = 0;
  let taken = 0;
  server.prependListener("connection", (socket: Socket) => {
    open += 1;
    socket.once("close", () => {
      open -= 1;
    });
  });

  function take(socket: Socket): void {
    if (open >= limit) {
      socket.destroy();
      return;
    }
    taken += 1;
    server.maxConnections = limit - taken;
    socket.once("close", () => {
      taken -= 1;
      server.maxConnections = limit - taken;
    });
    server.emit("connection", socket);
  }

  // As the server's own connections are, by Node's defaults.
  const options = { allowHalfOpen: !(server instanceof HttpsServer), noDelay: true };
  const acceptors: Server[] = [];
  const descriptors = ownDescriptorLimit() ?? Number.POSITIVE_INFINITY;
  const count = Math.min(ACCEPTORS, Math.floor(descriptors / DESCRIPTORS_FOR_EACH) - 1);
  try {
    for (let at = 0; at < count; at += 1) {
      const acceptor = createServer(options, take);
      await new Promise<void>((listening, refused) => {
        acceptor.once("error", refused).listen({ fd: duplicate(descriptor) }, listening);
      });
      acceptors.push(acceptor);
    }
  } catch {
    // No descriptor is left: those that are open do.
  }
  return {
    async close() {
      await Promise.all(acceptors.map((acceptor) => new Promise((closed) => acceptor.close(closed))));
    },
  };
}
