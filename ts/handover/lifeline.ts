// The connection between a former process and the processes after it, which inherit its other end from one another. It
// closes when the last of them has exited, in whatever way: then nobody serves any more, unless they were told to stop.
// A few bytes of text in each direction; without any, it still reports the end.
import { Socket } from "node:net";
import { createInterface } from "node:readline";

/** From the process that serves: the service was told to stop, and nobody replaces it; running publishes may end, or
 *  end at once. From a former process: it was told to stop the service. */
export type LifelineWord = "stopping" | "now" | "stop";

/** The end of a former process. */
export interface Lifeline {
  /** Resolves when every process after this one has exited. */
  readonly ended: Promise<void>;
  tell(word: LifelineWord): void;
}

/** `socket` is undefined for a process that could not be started. `heard` is called with each word of the other end. */
export function openLifeline(socket: Socket | undefined, heard: (word: LifelineWord) => void): Lifeline {
  if (socket === undefined) return { ended: Promise.resolve(), tell() {} };
  hear(socket, heard);
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { ended, tell: (word) => tell(socket, word) };
}

/** The former processes that are still running, from the point of view of one after them. */
export interface FormerProcesses {
  /** The ends that a successor inherits. */
  descriptors(): readonly number[];
  /** Tells all of them. */
  tell(word: LifelineWord): void;
  /** Resolves when all of them have exited. */
  gone(): Promise<void>;
}

/** `asked`: called when a former process passes on that the service is to stop. */
export function openFormers(descriptors: readonly number[], asked: () => void): FormerProcesses {
  const sockets = new Map<number, Socket>();
  const ends = descriptors.map((fd) => {
    const socket = new Socket({ fd, readable: true, writable: true });
    sockets.set(fd, socket);
    hear(socket, (word) => word === "stop" && asked());
    socket.unref();
    return new Promise<void>((resolve) => {
      socket.once("close", () => {
        sockets.delete(fd);
        resolve();
      });
    });
  });
  return {
    descriptors: () => [...sockets.keys()],
    tell(word) {
      for (const socket of sockets.values()) tell(socket, word);
    },
    async gone() {
      await Promise.all(ends);
    },
  };
}

function hear(socket: Socket, heard: (word: LifelineWord) => void): void {
  // The other end has been reset, or is closed while something is written: `close` follows.
  socket.on("error", () => {});
  createInterface({ input: socket }).on("line", (line) => heard(line as LifelineWord));
}

function tell(socket: Socket, word: LifelineWord): void {
  if (socket.writable) socket.write(`${word}\n`);
}
