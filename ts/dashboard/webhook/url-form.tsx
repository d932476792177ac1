// The form for the address of a webhook, with further fields between it and its buttons.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { wordsOfError } from "../shell/errors.ts";

interface UrlFormProps {
  readonly label: string;
  readonly help: string;
  readonly placeholder: string;
  readonly url: string | null;
  /** Rejects with the refusal, which is shown. */
  readonly save: (url: string) => Promise<void>;
  readonly onCancel: () => void;
  readonly children?: ComponentChildren;
}

export function UrlForm({ label, help, placeholder, url, save, onCancel, children }: UrlFormProps) {
  const [given, setGiven] = useState(url ?? "");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (given.trim() === "") return setError("The address is missing.");
    setBusy(true);
    try {
      await save(given.trim());
    } catch (refusal) {
      setBusy(false);
      setError(wordsOfError(refusal));
    }
  };
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <FormField label={label} error={error} help={help}>
        {(field) => (
          <input
            {...field}
            type="url"
            placeholder={placeholder}
            autocomplete="off"
            spellcheck={false}
            value={given}
            ref={(input) => input?.focus()}
            onInput={(event) => setGiven(event.currentTarget.value)}
          />
        )}
      </FormField>
      {children}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Saving …" : "Save"}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
