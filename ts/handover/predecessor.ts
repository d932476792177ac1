// The predecessor, the service that this process replaces, from this process's point of view.
import { converse, type Dialogue, type Message } from "./words.ts";

/** How long it may take to answer, ms: it reads the store in between. */
const ANSWER_LIMIT_MS = 60_000;

export interface Predecessor {
  /** Reports that everything but the ports is ready. Resolves when this process may listen. */
  prepared(): Promise<void>;
  /** Reports that this process listens, too. Resolves when the predecessor has stopped listening, or has gone. */
  listening(): Promise<void>;
}

/** Reports to the predecessor, if there is one, why this process cannot replace it. */
export function failToFollow(reason: string): void {
  const message: Message = { failed: reason };
  process.send?.(message, undefined, undefined, () => {});
}

export function openPredecessor(): Predecessor {
  const dialogue: Dialogue = converse(
    {
      send: (message) => void process.send?.(message, undefined, undefined, () => {}),
      listen(heard, gone) {
        process.on("message", (message) => heard(message as Message));
        process.once("disconnect", () => gone("has gone"));
      },
    },
    "the former process",
  );
  return {
    async prepared() {
      dialogue.tell("prepared");
      await dialogue.heard("listen", ANSWER_LIMIT_MS);
    },
    async listening() {
      dialogue.tell("listening");
      // Whatever has happened to the predecessor, this process is the service from here on.
      await dialogue.heard("yours", ANSWER_LIMIT_MS).catch(() => {});
      process.removeAllListeners("message");
      if (process.connected) process.disconnect();
    },
  };
}
