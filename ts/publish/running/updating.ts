// The updates of all running publishes: those of one publish are in updates.ts.
import type { Ending } from "../ending/ending.ts";
import type { Endings } from "../ending/endings.ts";
import type { Publishes, StartingPublish } from "../publishes.ts";
import { createUpdate, startUpdates, type UpdateDeps, type Updates } from "../updates.ts";

export interface Updating {
  start(publish: StartingPublish): void;
  /** Resolves when the one in flight has been answered; undefined when there are no updates of the publish. */
  stop(clientId: number): Promise<void> | undefined;
  stopAll(): Promise<void>[];
}

export function createUpdating(
  deps: Omit<UpdateDeps, "end"> & {
    readonly publishes: Pick<Publishes, "find">;
    readonly endings: Pick<Endings, "end">;
    readonly intervalMs: number;
  },
): Updating {
  const { publishes, endings, intervalMs, media, member, webhook, customers, log, deadlineMs } = deps;
  /** By client id. */
  const updates = new Map<number, Updates>();
  return {
    start({ intent }) {
      if (intent.webhook === null) return;
      const { clientId } = intent;
      const end = (ending: Ending) => {
        const running = publishes.find(clientId);
        if (running !== undefined) endings.end(running, "rejected_by_customer", ending);
      };
      const update = createUpdate(
        { ...intent, url: intent.webhook },
        { media, member, end, webhook, customers, log, deadlineMs },
      );
      updates.set(clientId, startUpdates(intervalMs, update));
    },
    stop(clientId) {
      const stopped = updates.get(clientId)?.stop();
      updates.delete(clientId);
      return stopped;
    },
    stopAll: () => [...updates.values()].map((each) => each.stop()),
  };
}
