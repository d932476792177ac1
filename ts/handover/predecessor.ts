// The service that this process follows, as this one talks to it.
import { converse, type Dialogue, type Message } from "./words.ts";

/** How long it may take to answer, ms: it reads the store in between. */
const ANSWER_LIMIT_MS = 60_000;

export interface Predecessor {
  /** Everything is there but the ports. Resolves when it is this process's turn to listen. */
  prepared(): Promise<void>;
  /** This process listens, too. Resolves when the other one does not any more, or is not there to say so. */
  listening(): Promise<void>;
}

/** Tells the service that this process was to follow why it does not; without one nobody is told. */
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
      // Whatever became of the other one, this process is the service now.
      await dialogue.heard("yours", ANSWER_LIMIT_MS).catch(() => {});
      process.removeAllListeners("message");
      if (process.connected) process.disconnect();
    },
  };
}
