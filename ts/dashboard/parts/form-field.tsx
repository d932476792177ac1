// A form field with its label, explanation, and the error about the value entered.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** Attributes for the input, select or textarea: `{(field) => <input {...field} />}`. */
export interface FieldAttributes {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": "true" | undefined;
}

interface FormFieldProps {
  readonly label: ComponentChildren;
  readonly help?: ComponentChildren;
  /** null: no error. */
  readonly error?: string | null;
  readonly children: (field: FieldAttributes) => ComponentChildren;
}

export function FormField({ label, help, error = null, children }: FormFieldProps) {
  const id = useId();
  const described = [help ? `${id}-help` : "", error === null ? "" : `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error === null ? undefined : "true",
      })}
      {error !== null && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {help && (
        <p class="help" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

interface SwitchFieldProps {
  readonly label: string;
  readonly help?: ComponentChildren;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}

/** A switch that takes effect immediately. */
export function SwitchField({ label, help, checked, disabled = false, onChange }: SwitchFieldProps) {
  const id = useId();
  return (
    <div class="field switch-field">
      <input
        id={id}
        type="checkbox"
        role="switch"
        aria-checked={checked}
        aria-describedby={help ? `${id}-help` : undefined}
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {help && (
        <p class="help" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}
