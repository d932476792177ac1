// Notifies the service manager, if it asked for that (Type=notify of systemd): whether the service is ready, and which
// process it is.
import type { Logger } from "pino";
import { reasonOf } from "../reason.ts";

export interface ServiceManager {
  /** In the format of sd_notify(3). A failure is only logged. */
  tell(state: string): Promise<void>;
}

/** `socket`: as named by the manager; null without one. */
export function openManager(socket: string | null, log: Pick<Logger, "warn">): ServiceManager {
  return {
    async tell(state) {
      if (socket === null) return;
      try {
        const { tellManager } = await import("../media/service-manager.ts");
        tellManager(socket, state);
      } catch (error) {
        log.warn({ reason: reasonOf(error), state }, "the service manager could not be notified");
      }
    },
  };
}
