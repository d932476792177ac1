// The messages between a service and its successor process, their order, and the waits in between.
import { UpgradeFailed } from "../errors.ts";

/** From the new process: `prepared`: it has started and may listen; `listening`: it listens, beside the former one.
 *  From the former one: `listen`, and `yours`: it has stopped listening. */
export type Word = "prepared" | "listen" | "listening" | "yours";
/** `failed`, with the stack of a fault of the program. `migrating`: sent every few seconds while tables are migrated, which
 *  may take long in a large store. `note`: a sentence for the person who upgrades. */
export type Message =
  | { readonly word: Word }
  | { readonly failed: string; readonly stack?: string }
  | { readonly migrating: true }
  | { readonly note: string };

/** One end of the channel between the two. */
export interface Channel {
  send(message: Message): void;
  /** Receives the messages of the other end, and its disappearance, with the reason. */
  listen(heard: (message: Message) => void, gone: (reason: string) => void): void;
}

export interface Dialogue {
  tell(word: Word): void;
  /** Resolves when the other has sent the word. Rejects with `UpgradeFailed` when it reports a failure, disappears, or
   *  takes longer than `limitMs`, not counting the time of migrations. Its cause is the stack that was reported. */
  heard(word: Word, limitMs: number): Promise<void>;
}

/** `noted` is called with each note of the other. */
export function converse(channel: Channel, other: string, noted: (note: string) => void = () => {}): Dialogue {
  const said = new Set<Word>();
  let failed: UpgradeFailed | null = null;
  let check = (): void => {};
  let extend = (): void => {};
  const fail = (reason: string, stack?: string) => {
    failed ??= new UpgradeFailed(reason, { cause: stack });
    check();
  };
  channel.listen(
    (message) => {
      if ("failed" in message) return fail(message.failed, message.stack);
      if ("migrating" in message) return extend();
      if ("note" in message) return noted(message.note);
      said.add(message.word);
      check();
    },
    (reason) => fail(`${other} ${reason}`),
  );
  return {
    tell: (word) => channel.send({ word }),
    heard: (word, limitMs) =>
      new Promise((resolve, reject) => {
        const late = `${other} took longer than ${limitMs / 1_000} s to be ${word}`;
        const begin = () => setTimeout(() => reject(new UpgradeFailed(late)), limitMs);
        let timer = begin();
        extend = () => {
          clearTimeout(timer);
          timer = begin();
        };
        check = () => {
          if (!said.has(word) && failed === null) return;
          clearTimeout(timer);
          extend = () => {};
          if (said.has(word)) resolve();
          else reject(failed);
        };
        check();
      }),
  };
}
