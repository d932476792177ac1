// The predecessor, the service that this process replaces, from this process's point of view.
import { ServiceError } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { converse, type Dialogue, type Message } from "./words.ts";

/** How long it may take to answer, ms: it reads the store in between. */
const ANSWER_LIMIT_MS = 60_000;
/** How often it is told that tables are being migrated, and for how long at most, ms. */
const MIGRATING_SENT_EVERY_MS = 5_000;
const MIGRATING_LIMIT_MS = 3_600_000;

export interface Predecessor {
  /** The tables are being migrated from now on, until `migrated`. May be called again. */
  migrating(): void;
  migrated(): void;
  /** Says something to the person who upgrades. */
  note(note: string): void;
  /** Reports that everything but the ports is ready. Resolves when this process may listen. */
  prepared(): Promise<void>;
  /** Reports that this process listens, too. Resolves when the predecessor has stopped listening, or has gone. */
  listening(): Promise<void>;
}

/** Reports to the predecessor, if there is one, why this process cannot replace it. */
export function failToFollow(error: unknown): void {
  const origin = originOf(error);
  // What the service reports in words needs no place in the program.
  const stack = origin instanceof ServiceError || !(origin instanceof Error) ? undefined : origin.stack;
  tell({ failed: reasonOf(error), ...(stack === undefined ? {} : { stack }) });
}

/** The fault of the program that caused an error, else the error itself. */
function originOf(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const isFault = [SyntaxError, TypeError, ReferenceError, RangeError].some((kind) => error.cause instanceof kind);
  return isFault ? error.cause : error;
}

const tell = (message: Message): void => void process.send?.(message, undefined, undefined, () => {});

export function openPredecessor(): Predecessor {
  const dialogue: Dialogue = converse(
    {
      send: tell,
      listen(heard, gone) {
        process.on("message", (message) => heard(message as Message));
        process.once("disconnect", () => gone("has gone"));
      },
    },
    "the former process",
  );
  let telling: NodeJS.Timeout | undefined;
  const migrated = () => clearInterval(telling);
  return {
    migrating() {
      migrated();
      const since = performance.now();
      telling = setInterval(() => {
        if (performance.now() - since < MIGRATING_LIMIT_MS) tell({ migrating: true });
      }, MIGRATING_SENT_EVERY_MS);
      tell({ migrating: true });
    },
    migrated,
    note: (note) => tell({ note }),
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
