// A new password, as the service accepts it.
import { FormField } from "./form-field.tsx";

interface NewPasswordFieldProps {
  readonly help: string;
  readonly value: string;
  readonly onChange: (password: string) => void;
}

export function NewPasswordField({ help, value, onChange }: NewPasswordFieldProps) {
  return (
    <FormField label="New password" help={`At least 12 characters. ${help}`}>
      {(field) => (
        <input
          {...field}
          type="password"
          autocomplete="new-password"
          required
          minLength={12}
          maxLength={256}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}
