// What the service manager (systemd) is told of this process. Not when: main.ts says that.
import { notifyManager } from "#native";

/** Tells `state` (sd_notify(3)), such as `READY=1`, at the socket that the manager named: a path, or `@` and an abstract
 *  name. Throws what the system refuses. */
export function tellManager(socket: string, state: string): void {
  notifyManager(socket, state);
}
