// A form that is submitted once at a time, and may be submitted again after a refusal. After a success it stays busy,
// since its purpose is fulfilled.
import { useState } from "preact/hooks";
import { wordsOfError } from "./errors.ts";

/** `send` rejects with the refusal; `tell` receives its text. */
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
