// A form that is sent once at a time, and again after a refusal. After a success it stays busy: what it was for is over.
import { useState } from "preact/hooks";
import { wordsOfError } from "./errors.ts";

/** `send` rejects with the refusal, which `tell` is given in words. */
export function useSubmission(send: () => Promise<void>, tell: (words: string) => void) {
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await send();
    } catch (refusal) {
      tell(wordsOfError(refusal));
      setBusy(false);
    }
  };
  return {
    isBusy,
    onSubmit(event: Event) {
      event.preventDefault();
      void submit();
    },
  };
}
