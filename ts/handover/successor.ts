// Starts the successor process: with this one's environment, user and limits, the code presently on disk, the listening
// sockets, and the lifelines of this and of former processes.
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { reasonOf } from "../reason.ts";
import { environmentFor, FIRST_SOCKET, type SocketName } from "./inherited.ts";
import { type Lifeline, type LifelineWord, openLifeline } from "./lifeline.ts";
import { killTree } from "./process-tree.ts";
import { converse, type Dialogue, type Message } from "./words.ts";

export interface Successor extends Dialogue {
  readonly pid: number;
  readonly lifeline: Lifeline;
  /** Why it does not run any more; null while it does. */
  end(): string | null;
  /** Detaches it: it continues on its own. */
  release(): void;
  /** Kills it and everything that it has started, and resolves when it has exited. */
  kill(): Promise<void>;
}

/** What a new process is started with. */
export interface SuccessorOptions {
  /** A program and its arguments. */
  readonly command: readonly string[];
  /** Descriptors of this process, which inherits them to the new one. */
  readonly sockets: readonly (readonly [name: SocketName, descriptor: number])[];
  readonly lifelines: readonly number[];
  /** Called with each word that the processes after this one say once they serve. */
  readonly heard: (word: LifelineWord) => void;
  /** Called with each note while it starts. */
  readonly said: (note: string) => void;
}

export function startSuccessor({ command, sockets, lifelines, heard, said }: SuccessorOptions): Successor {
  const [program = "", ...args] = command;
  const inherited = [...sockets.map(([, descriptor]) => descriptor), ...lifelines];
  const names = sockets.map(([name]) => name);
  const child = spawn(program, args, {
    env: environmentFor(names, lifelines.length + 1),
    stdio: ["ignore", "inherit", "inherit", ...inherited, "pipe", "ipc"],
  });
  const lifeline = openLifeline(child.stdio?.[FIRST_SOCKET + inherited.length] as Socket | undefined, heard);
  const gone = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`does not start: ${reasonOf(error)}`));
    child.once("exit", (code, signal) => resolve(`ended with ${code ?? signal}`));
  });
  let end: string | null = null;
  void gone.then((reason) => {
    end = reason;
  });
  const dialogue = converse(
    {
      // Its exit is reported separately, so errors of sending are ignored.
      send: (message) => void child.send(message, () => {}),
      listen(heard, left) {
        child.on("message", (message) => heard(message as Message));
        void gone.then(left);
      },
    },
    "the new process",
    said,
  );
  return {
    ...dialogue,
    pid: child.pid ?? 0,
    lifeline,
    end: () => end,
    release() {
      if (child.connected) child.disconnect();
      child.unref();
    },
    async kill() {
      if (child.pid !== undefined) killTree(child.pid);
      await gone;
    },
  };
}
