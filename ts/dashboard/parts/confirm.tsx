// Asks for confirmation of something that cannot be undone: `if (await confirm({…})) …`.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { FormField } from "./form-field.tsx";

export interface Question {
  /** "Revoke this key?" */
  readonly title: string;
  /** The consequence. */
  readonly text: string;
  /** Label of the button: the action itself, never "OK". */
  readonly does: string;
  /** A name that must be typed first, for actions that cannot be repaired. */
  readonly typed?: string;
}

const asked = signal<{ readonly question: Question; readonly answer: (does: boolean) => void } | null>(null);

export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    asked.value = {
      question,
      answer(does) {
        asked.value = null;
        resolve(does);
      },
    };
  });
}

/** The question is answered with no. */
export function forgetQuestion(): void {
  asked.value?.answer(false);
}

/** Rendered once, beside all pages. */
export function ConfirmHost() {
  return asked.value === null ? null : <Asking key={asked.value.question.title} {...asked.value} />;
}

function Asking({ question, answer }: { readonly question: Question; readonly answer: (does: boolean) => void }) {
  const { title, text, does, typed } = question;
  const [given, setGiven] = useState("");
  const isReady = typed === undefined || given.trim() === typed;
  const submit = (event: Event) => {
    event.preventDefault();
    if (isReady) answer(true);
  };
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <form onSubmit={submit}>
        <p>{text}</p>
        {typed !== undefined && (
          <FormField label={`Type ${typed} to continue`}>
            {(field) => (
              <input
                {...field}
                autocomplete="off"
                spellcheck={false}
                value={given}
                onInput={(event) => setGiven(event.currentTarget.value)}
              />
            )}
          </FormField>
        )}
        <footer>
          <button type="button" onClick={() => answer(false)}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={!isReady}>
            {does}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
