// The control socket in the data directory, by which an operator on this machine commands the running service. Its mode
// restricts it to the service's own user and root.
import { chmod, unlink } from "node:fs/promises";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Logger } from "pino";
import { ConfigInvalid, UpgradeFailed } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import type { HandedOver, Handover } from "./handover.ts";

/** Longest request, bytes. */
const REQUEST_LIMIT_BYTES = 64;
const UPGRADE = "upgrade";

type Line = { readonly say: string } | { readonly failed: string } | { readonly done: HandedOver };

const pathIn = (dataDir: string) => join(dataDir, "headgate.sock");

export interface Control {
  /** Accepts no new commands; a running one is still answered. */
  close(): Promise<void>;
}

/** Rejects with the system's error. */
export async function openControl(dataDir: string, handOver: Handover): Promise<Control> {
  const path = pathIn(dataDir);
  const server = createServer((socket) => {
    socket.on("error", () => {}); // the caller has disconnected; the requested action continues
    let request = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      request += text;
      if (request.length > REQUEST_LIMIT_BYTES) socket.destroy();
      if (request === `${UPGRADE}\n`) void answer(socket, handOver);
    });
  });
  server.unref();
  try {
    await listening(server, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || (await isAnswered(path))) throw error;
    await unlink(path); // left by a process that died
    await listening(server, path);
  }
  await chmod(path, 0o600);
  return {
    // Unlinks the path, and does not wait for connected clients.
    async close() {
      server.close();
    },
  };
}

/** The service also runs without it, for instance when its path is too long for the system. */
export async function controlOf(
  dataDir: string,
  handOver: Handover,
  log: Pick<Logger, "warn">,
): Promise<Control | null> {
  try {
    return await openControl(dataDir, handOver);
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "headgate upgrade will not reach this service");
    return null;
  }
}

async function answer(socket: Socket, handOver: Handover): Promise<void> {
  const write = (line: Line) => void socket.write(`${JSON.stringify(line)}\n`);
  try {
    write({ done: await handOver((say) => write({ say })) });
  } catch (error) {
    write({ failed: reasonOf(error) });
  }
  socket.end();
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Hands the service of a data directory over to a new process. Rejects with `UpgradeFailed`, and with `ConfigInvalid`
 *  when no service runs there. */
export async function askToUpgrade(dataDir: string, say: (line: string) => void): Promise<HandedOver> {
  const path = pathIn(dataDir);
  const socket = createConnection(path, () => socket.write(`${UPGRADE}\n`));
  const broken = new Promise<Error | null>((resolve) => {
    socket.once("error", resolve).once("close", () => resolve(null));
  });
  try {
    for await (const text of createInterface({ input: socket })) {
      const line = JSON.parse(text) as Line;
      if ("say" in line) say(line.say);
      else if ("failed" in line) throw new UpgradeFailed(line.failed);
      else return line.done;
    }
  } catch (error) {
    socket.destroy();
    // Some versions of Node end the lines with the socket's error, others just end them.
    if (error !== (await broken)) throw error;
  }
  const error = (await broken) as NodeJS.ErrnoException | null;
  if (error === null) throw new UpgradeFailed("the service ended before it reported the result");
  if (error.code === "ENOENT" || error.code === "ECONNREFUSED") {
    const wanted = "set the data directory of your service with --data-dir or HEADGATE_DATA_DIR";
    throw new ConfigInvalid(`no service runs in ${dataDir}: ${wanted}, or start it with headgate serve`);
  }
  throw new UpgradeFailed(`${path}: ${reasonOf(error)}`);
}
