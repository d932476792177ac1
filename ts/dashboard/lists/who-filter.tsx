// The person or API key by whom a list is filtered, chosen by name.
import { FormField } from "../parts/form-field.tsx";

interface WhoFilterProps {
  readonly label: string;
  /** An id; "" for anybody. */
  readonly who: string;
  /** By their ids. */
  readonly names: ReadonlyMap<string, string>;
  readonly onChange: (who: string) => void;
}

export function WhoFilter({ label, who, names, onChange }: WhoFilterProps) {
  return (
    <FormField label={label}>
      {(field) => (
        <select {...field} value={who} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">Anybody</option>
          {who !== "" && !names.has(who) && <option value={who}>{who}</option>}
          {[...names].map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
    </FormField>
  );
}
