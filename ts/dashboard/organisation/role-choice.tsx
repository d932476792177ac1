// The choice of a role, each with its permissions.
import { useId } from "preact/hooks";
import { ROLE_WORDS, type Role } from "../shell/permissions.ts";

export function RoleChoice({ value, onChange }: { readonly value: Role; readonly onChange: (role: Role) => void }) {
  const name = useId();
  return (
    <fieldset class="choices">
      <legend>Role</legend>
      {(Object.keys(ROLE_WORDS) as Role[]).map((role) => (
        <label key={role}>
          <input type="radio" name={name} value={role} checked={value === role} onChange={() => onChange(role)} />
          <span>{ROLE_WORDS[role].name}</span>
          <small>{ROLE_WORDS[role].may}</small>
        </label>
      ))}
    </fieldset>
  );
}
