// Creates an API key, and shows its text once.
import { useState } from "preact/hooks";
import { CopyField } from "../parts/copy-field.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FormField } from "../parts/form-field.tsx";
import { answerOf, api } from "../shell/client.ts";
import { timeNow } from "../shell/clock.ts";
import type { Role } from "../shell/permissions.ts";
import { useSubmission } from "../shell/submission.ts";
import { RoleChoice } from "./role-choice.tsx";

const DAY_MS = 86_400_000;
/** Days; 0: never. */
const EXPIRIES: readonly (readonly [days: number, words: string])[] = [
  [0, "Never"],
  [1, "After a day"],
  [30, "After 30 days"],
  [90, "After 90 days"],
  [365, "After a year"],
];

interface NewKeyDialogProps {
  readonly onClose: () => void;
  readonly onMade: (key: string, label: string | null) => void;
}

export function NewKeyDialog({ onClose, onMade }: NewKeyDialogProps) {
  const [role, setRole] = useState<Role>("user");
  const [label, setLabel] = useState("");
  const [tag, setTag] = useState("");
  const [days, setDays] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const { isBusy, onSubmit } = useSubmission(async () => {
    setError(null);
    const body = {
      role,
      label: label.trim() || null,
      scope_tag: tag.trim() || null,
      ...(days === 0 ? {} : { expires_at: new Date(timeNow() + days * DAY_MS).toISOString() }),
    };
    const { key } = await answerOf(api.POST("/organisation/key", { body }));
    onMade(key, body.label);
  }, setError);
  return (
    <Dialog title="Create a key" onClose={onClose} mustStay={isBusy}>
      <form onSubmit={onSubmit}>
        <FormField label="Label" help="What the key is for, so that you know later which one to revoke.">
          {(field) => (
            <input
              {...field}
              type="text"
              maxLength={100}
              autocomplete="off"
              value={label}
              onInput={(event) => setLabel(event.currentTarget.value)}
            />
          )}
        </FormField>
        <RoleChoice value={role} onChange={setRole} />
        <FormField
          label="Only streams with this tag"
          help="Empty: all streams. With a tag, the key can see and create only streams with that tag, and cannot manage the organisation itself."
        >
          {(field) => (
            <input
              {...field}
              type="text"
              maxLength={100}
              autocomplete="off"
              value={tag}
              onInput={(event) => setTag(event.currentTarget.value)}
            />
          )}
        </FormField>
        <FormField label="Expires">
          {(field) => (
            <select {...field} value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
              {EXPIRIES.map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FormField>
        <div role="alert">{error !== null && <p class="note bad">{error}</p>}</div>
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Creating the key …" mustStay>
          Create the key
        </DialogButtons>
      </form>
    </Dialog>
  );
}

interface ShownKeyProps {
  /** The key's text. */
  readonly secret: string;
  readonly title: string;
  readonly onClose: () => void;
}

/** Cannot be closed with Escape or by accident, because the key is never shown again. */
export function ShownKey({ secret, title, onClose }: ShownKeyProps) {
  return (
    <Dialog title={title} onClose={onClose} mustStay>
      <div class="stack">
        <p>
          <strong>It is shown only once.</strong> Copy it now and store it safely.
        </p>
        <CopyField label="API key" value={secret} />
        <footer>
          <button type="button" class="primary" onClick={onClose}>
            Done
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
