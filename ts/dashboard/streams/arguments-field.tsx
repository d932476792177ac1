// The field for custom arguments that the customer's webhook requires of a broadcaster.
import { FormField } from "../parts/form-field.tsx";

interface ArgumentsFieldProps {
  readonly label: string;
  readonly help: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function ArgumentsField({ label, help, value, onChange }: ArgumentsFieldProps) {
  return (
    <FormField label={label} help={help}>
      {(field) => (
        <input
          {...field}
          type="text"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="passcode=s3cret"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}
