// The process that is to follow this one, as this one starts it: with its environment, its user and its limits, the code
// that is on the disk now, and the sockets that listen.
import { spawn } from "node:child_process";
import { reasonOf } from "../reason.ts";
import { environmentFor, type SocketName } from "./inherited.ts";
import { converse, type Dialogue, type Message } from "./words.ts";

export interface Successor extends Dialogue {
  readonly pid: number;
  isGone(): boolean;
  /** It runs by itself from now on. */
  release(): void;
  /** Ends it, and resolves when it has gone. */
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
      // One that has gone is heard of by itself.
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
      child.kill("SIGKILL");
      await gone;
    },
  };
}
