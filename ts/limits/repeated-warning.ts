// Warnings about what is tried again and again: while a disk is full there is one line, not one for each attempt.
import type { Logger } from "pino";

export interface RepeatedWarning {
  /** Runs `act`. A failure is logged unless the former run failed too. Never rejects. */
  around(act: () => Promise<void>): Promise<void>;
}

export function repeatedWarning(log: Pick<Logger, "warn">, words: string): RepeatedWarning {
  let isFailing = false;
  return {
    async around(act) {
      try {
        await act();
        isFailing = false;
      } catch (err) {
        if (!isFailing) log.warn({ err }, words);
        isFailing = true;
      }
    },
  };
}
