// The buttons of an address that is called: change it, or remove it after a question.
import { confirm } from "../parts/confirm.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { wordsOfError } from "../shell/errors.ts";

interface AddressButtonsProps {
  /** "the webhook" */
  readonly what: string;
  /** What removing it means. */
  readonly consequence: string;
  readonly onEdit: () => void;
  /** Rejects with the refusal, which is shown. */
  readonly remove: () => Promise<void>;
}

export function AddressButtons({ what, consequence, onEdit, remove }: AddressButtonsProps) {
  const askAndRemove = async () => {
    if (!(await confirm({ title: `Remove ${what}?`, text: consequence, does: `Remove ${what}` }))) return;
    try {
      await remove();
      say(`${what.replace(/^t/, "T")} is removed`);
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <>
      <button type="button" aria-label={`Change ${what}`} onClick={onEdit}>
        Change
      </button>
      <button type="button" class="danger" aria-label={`Remove ${what}`} onClick={() => void askAndRemove()}>
        Remove
      </button>
    </>
  );
}
