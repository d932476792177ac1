// The messages between a service and its successor process, their order, and the waits in between.
import { UpgradeFailed } from "../errors/upgrade-failed.ts";

/** From the new process: `prepared`: it has started and may listen; `listening`: it listens, beside the former one.
 *  From the former one: `listen`, and `yours`: it has stopped listening. */
export type Word = "prepared" | "listen" | "listening" | "yours";
export type Message = { readonly word: Word } | { readonly failed: string };

/** One end of the channel between the two. */
export interface Channel {
  send(message: Message): void;
  /** Receives the messages of the other end, and its disappearance, with the reason. */
  listen(heard: (message: Message) => void, gone: (reason: string) => void): void;
}

export interface Dialogue {
  tell(word: Word): void;
  /** Resolves when the other has sent the word. Rejects with `UpgradeFailed` when it reports a failure, disappears, or
   *  takes longer than `limitMs`. */
  heard(word: Word, limitMs: number): Promise<void>;
}

export function converse(channel: Channel, other: string): Dialogue {
  const said = new Set<Word>();
  let failed: string | null = null;
  let look = (): void => {};
  const fail = (reason: string) => {
    failed ??= reason;
    look();
  };
  channel.listen(
    (message) => {
      if ("failed" in message) return fail(message.failed);
      said.add(message.word);
      look();
    },
    (reason) => fail(`${other} ${reason}`),
  );
  return {
    tell: (word) => channel.send({ word }),
    heard: (word, limitMs) =>
      new Promise((resolve, reject) => {
        const late = `${other} took longer than ${limitMs / 1_000} s to be ${word}`;
        const timer = setTimeout(() => reject(new UpgradeFailed(late)), limitMs);
        look = () => {
          if (!said.has(word) && failed === null) return;
          clearTimeout(timer);
          if (said.has(word)) resolve();
          else reject(new UpgradeFailed(failed ?? ""));
        };
        look();
      }),
  };
}
