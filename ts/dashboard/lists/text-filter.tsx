// A text by which a list is filtered.
import { useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";

interface TextFilterProps {
  readonly label: string;
  readonly value: string;
  readonly isNumber?: boolean;
  readonly error?: string | null;
  readonly onChange: (value: string) => void;
}

/** Takes effect on Enter, or when the field loses focus. */
export function TextFilter({ label, value, isNumber = false, error = null, onChange }: TextFilterProps) {
  const [given, setGiven] = useState<string | null>(null);
  const done = () => {
    if (given !== null && given.trim() !== value) onChange(given.trim());
    setGiven(null);
  };
  return (
    <FormField label={label} error={error}>
      {(field) => (
        <input
          {...field}
          type="text"
          inputMode={isNumber ? "numeric" : "text"}
          autocomplete="off"
          spellcheck={false}
          value={given ?? value}
          onInput={(event) => setGiven(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && done()}
          onBlur={done}
        />
      )}
    </FormField>
  );
}
