// What whoever started this process has left to it: sockets that listen already, and the service manager to tell of its
// state. By the protocol of systemd (sd_listen_fds(3), sd_notify(3)), which a service speaks to the process that follows it, too.
import { closeSync } from "node:fs";
import { ConfigInvalid } from "../errors.ts";

/** What a socket is for, as `FileDescriptorName=` calls it. */
const SOCKET_NAMES = ["http", "rtmp", "rtmps", "metrics"] as const;
export type SocketName = (typeof SOCKET_NAMES)[number];
/** The first one's descriptor; the others follow. */
export const FIRST_SOCKET = 3;
/** Says that the sockets come from the parent: unlike systemd, it cannot know the id of the process that it starts. */
const PARENT = "LISTEN_PARENT_PID";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Inherited {
  /** Name → file descriptor. */
  readonly sockets: ReadonlyMap<SocketName, number>;
  /** Whether the parent is the service that this process follows. */
  readonly isSuccessor: boolean;
  /** Where the service manager is told; null without one. */
  readonly manager: string | null;
}

/** Throws `ConfigInvalid` for a socket that nobody knows what to do with. */
export function readInherited(
  self: { readonly pid: number; readonly ppid: number } = process,
  env: Environment = process.env,
): Inherited {
  const isSuccessor = env[PARENT] === String(self.ppid);
  const manager = env.NOTIFY_SOCKET || null;
  if (!isSuccessor && env.LISTEN_PID !== String(self.pid)) return { sockets: new Map(), isSuccessor, manager };
  const names = (env.LISTEN_FDNAMES ?? "").split(":");
  const sockets = new Map<SocketName, number>();
  for (let at = 0; at < Number(env.LISTEN_FDS); at += 1) {
    const name = SOCKET_NAMES.find((known) => known === names[at]);
    if (name === undefined || sockets.has(name)) {
      const known = `FileDescriptorName= must be one of ${SOCKET_NAMES.join(", ")}, each once`;
      throw new ConfigInvalid(`the service manager hands over a socket named ${names[at] || "nothing"}: ${known}`);
    }
    sockets.set(name, FIRST_SOCKET + at);
  }
  return { sockets, isSuccessor, manager };
}

/** The environment of a process that is to inherit sockets of these names, in this order. */
export function environmentFor(
  names: readonly SocketName[],
  self: { readonly pid: number } = process,
  env: Environment = process.env,
): Record<string, string | undefined> {
  const { LISTEN_PID: _, ...rest } = env;
  return {
    ...rest,
    [PARENT]: String(self.pid),
    LISTEN_FDS: String(names.length),
    LISTEN_FDNAMES: names.join(":"),
  };
}

/** Closes sockets that somebody else has a descriptor of by now. */
export function closeSockets({ sockets }: Inherited, names: readonly SocketName[]): void {
  for (const name of names) {
    const socket = sockets.get(name);
    if (socket !== undefined) closeSync(socket);
  }
}
