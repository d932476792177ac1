// Notifies the service manager (systemd) of the state of this process. When to do so is decided in main.ts.
import { notifyManager } from "#native";

/** Sends `state` (sd_notify(3)), such as `READY=1`, to the socket that the manager named: a path, or `@` and an
 *  abstract name. Throws the system's error. */
export function tellManager(socket: string, state: string): void {
  notifyManager(socket, state);
}
