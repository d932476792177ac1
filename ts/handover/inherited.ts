// What this process inherits from its parent: listening sockets, and the service manager to notify, by the protocol of
// systemd (sd_listen_fds(3), sd_notify(3)), which a service also uses towards its successor process; and the lifelines of
// former processes, whose descriptors follow the sockets.
import { closeSync } from "node:fs";
import { ConfigInvalid } from "../errors.ts";

/** The purpose of a socket, as in `FileDescriptorName=`. */
const SOCKET_NAMES = ["http", "rtmp", "rtmps", "metrics"] as const;
export type SocketName = (typeof SOCKET_NAMES)[number];
/** Descriptor of the first socket; the others follow. */
export const FIRST_SOCKET = 3;
/** Marks sockets inherited from a parent that, unlike systemd, cannot know the id of the process it starts. */
const PARENT = "LISTEN_PARENT_PID";
/** How many lifelines of former processes follow the sockets. */
const LIFELINES = "LISTEN_LIFELINES";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Inherited {
  /** Name → file descriptor. */
  readonly sockets: ReadonlyMap<SocketName, number>;
  /** File descriptors of the lifelines of former processes (lifeline.ts). */
  readonly lifelines: readonly number[];
  /** Whether the parent is the service that this process replaces. */
  readonly isSuccessor: boolean;
  /** Socket of the service manager; null without one. */
  readonly manager: string | null;
}

/** Throws `ConfigInvalid` for a socket of unknown purpose. */
export function readInherited(
  self: { readonly pid: number; readonly ppid: number } = process,
  env: Environment = process.env,
): Inherited {
  const isSuccessor = env[PARENT] === String(self.ppid);
  const manager = env.NOTIFY_SOCKET || null;
  const isActivated = isSuccessor || env.LISTEN_PID === String(self.pid);
  const names = (env.LISTEN_FDNAMES ?? "").split(":");
  const sockets = new Map<SocketName, number>();
  const count = isActivated ? Number(env.LISTEN_FDS) : 0;
  for (let at = 0; at < count; at += 1) {
    const name = SOCKET_NAMES.find((known) => known === names[at]);
    if (name === undefined || sockets.has(name)) {
      const known = `FileDescriptorName= must be one of ${SOCKET_NAMES.join(", ")}, each once`;
      throw new ConfigInvalid(`the service manager hands over a socket named ${names[at] || "nothing"}: ${known}`);
    }
    sockets.set(name, FIRST_SOCKET + at);
  }
  const lifelines = isSuccessor ? Number(env[LIFELINES] ?? 0) : 0;
  const after = FIRST_SOCKET + count;
  return { sockets, lifelines: Array.from({ length: lifelines }, (_, at) => after + at), isSuccessor, manager };
}

/** The environment of a process that inherits sockets with these names, in this order, and then so many lifelines. */
export function environmentFor(
  names: readonly SocketName[],
  lifelines: number,
  self: { readonly pid: number } = process,
  env: Environment = process.env,
): Record<string, string | undefined> {
  const { LISTEN_PID: _, ...rest } = env;
  return {
    ...rest,
    [PARENT]: String(self.pid),
    LISTEN_FDS: String(names.length),
    LISTEN_FDNAMES: names.join(":"),
    [LIFELINES]: String(lifelines),
  };
}

/** Whether the end of this process would end its successors, too, or would be taken for that of the service: the first
 *  process of a container, or one that its init process has started and watches. */
export function outlivesSuccessors(
  { isSuccessor, manager }: Pick<Inherited, "isSuccessor" | "manager">,
  self: { readonly pid: number; readonly ppid: number } = process,
): boolean {
  return self.pid === 1 || (self.ppid === 1 && manager === null && !isSuccessor);
}

/** Closes sockets for which another descriptor exists. */
export function closeSockets({ sockets }: Inherited, names: readonly SocketName[]): void {
  for (const name of names) {
    const socket = sockets.get(name);
    if (socket !== undefined) closeSync(socket);
  }
}
