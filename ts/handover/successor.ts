// Starts the successor process: with this one's environment, user and limits, the code presently on disk, and the
// listening sockets.
import { spawn } from "node:child_process";
import { reasonOf } from "../reason.ts";
import { environmentFor, type SocketName } from "./inherited.ts";
import { killTree } from "./process-tree.ts";
import { converse, type Dialogue, type Message } from "./words.ts";

export interface Successor extends Dialogue {
  readonly pid: number;
  isGone(): boolean;
  /** Detaches it: it continues on its own. */
  release(): void;
  /** Kills it and everything that it has started, and resolves when it has exited. */
  kill(): Promise<void>;
}

/** `command`: a program and its arguments; `sockets`: descriptors of this process. */
export function startSuccessor(
  command: readonly string[],
  sockets: readonly (readonly [name: SocketName, descriptor: number])[],
): Successor {
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    env: environmentFor(sockets.map(([name]) => name)),
    stdio: ["ignore", "inherit", "inherit", ...sockets.map(([, descriptor]) => descriptor), "ipc"],
  });
  const gone = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`does not start: ${reasonOf(error)}`));
    child.once("exit", (code, signal) => resolve(`ended with ${code ?? signal}`));
  });
  let isGone = false;
  void gone.then(() => {
    isGone = true;
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
  );
  return {
    ...dialogue,
    pid: child.pid ?? 0,
    isGone: () => isGone,
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
