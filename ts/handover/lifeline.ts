// The connection between a former process and the processes after it, which inherit its other end from one another. It
// closes when the last of them has exited, in whatever way: then nobody serves any more, unless they were told to stop.
// A few bytes of text in each direction; without any, it still reports the end.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { createInterface } from "node:readline";

/** From the process that serves: `stopping`: the service was told to stop, and nobody replaces it; running publishes may
 *  end; `now`: they end at once. From a former process: `stop`: it was told to stop the service; `idle`: nothing of it is
 *  to be waited for, although it has not exited. */
export type LifelineWord = "stopping" | "now" | "stop" | "idle";

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

/** The former processes that are still running, from the point of view of one after them. Only the process that serves
 *  reads what they say: all processes after them have the same end of the connection. */
export interface FormerProcesses {
  /** The ends that a successor inherits. */
  descriptors(): readonly number[];
  /** This process serves from now on. */
  serve(): void;
  /** Another process serves from now on. */
  leave(): void;
  /** Resolves when a former process passes on that the service is to stop. */
  readonly stopPassedOn: Promise<void>;
  /** Tells all of them. */
  tell(word: LifelineWord): void;
  /** Resolves when all of them have exited, or are idle. Call after `serve`. */
  gone(): Promise<void>;
}

/** `duplicate`: duplicates a descriptor. */
export function createFormers(
  descriptors: readonly number[],
  duplicate: (descriptor: number) => number,
): FormerProcesses {
  const open = new Set(descriptors);
  const sockets = new Set<Socket>();
  let ends: readonly Promise<void>[] = [];
  let isServing = false;
  let passOn = (): void => {};
  const stopPassedOn = new Promise<void>((resolve) => {
    passOn = resolve;
  });

  function listenTo(descriptor: number): Promise<void> {
    // Of its own, so that it can be closed without closing the lifeline.
    const socket = new Socket({ fd: duplicate(descriptor), readable: true, writable: true });
    sockets.add(socket);
    socket.unref();
    return new Promise((resolve) => {
      hear(socket, (word) => {
        if (word === "stop") passOn();
        if (word === "idle") resolve();
      });
      socket.once("close", () => {
        sockets.delete(socket);
        if (isServing && open.delete(descriptor)) closeSync(descriptor);
        resolve();
      });
    });
  }

  return {
    descriptors: () => [...open],
    stopPassedOn,
    serve() {
      isServing = true;
      ends = descriptors.map(listenTo);
    },
    leave() {
      isServing = false;
      for (const socket of sockets) socket.destroy();
    },
    tell(word) {
      for (const socket of sockets) tell(socket, word);
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
