// Dialogs for adding a person, and for setting a new password. The password is generated here, shown once, and passed
// on by the person who created it: Headgate sends no mail.
import { useState } from "preact/hooks";
import { CopyField } from "../parts/copy-field.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FormField } from "../parts/form-field.tsx";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import type { Role } from "../shell/permissions.ts";
import { useSubmission } from "../shell/submission.ts";
import { newPassword } from "./new-password.ts";
import { RoleChoice } from "./role-choice.tsx";

type Person = Records["User"];

interface AddPersonDialogProps {
  readonly onClose: () => void;
  readonly onAdded: (person: Person) => void;
}

export function AddPersonDialog({ onClose, onAdded }: AddPersonDialogProps) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("user");
  const [password] = useState(newPassword);
  const [error, setError] = useState<string | null>(null);
  const [added, setAdded] = useState<Person | null>(null);
  const { isBusy, onSubmit } = useSubmission(async () => {
    setError(null);
    const body = { email: email.trim(), password, role };
    const person = await answerOf(api.POST("/organisation/user", { body }));
    setAdded(person);
    onAdded(person);
  }, setError);
  if (added !== null) return <PasswordShown email={added.email} password={password} onClose={onClose} />;
  return (
    <Dialog title="Add a person" onClose={onClose} mustStay={isBusy}>
      <form onSubmit={onSubmit}>
        <FormField
          label="E-mail address"
          error={error}
          help="They sign in with it. Each address can belong to only one person of this Headgate."
        >
          {(field) => (
            <input
              {...field}
              type="email"
              required
              maxLength={254}
              autocomplete="off"
              value={email}
              onInput={(event) => setEmail(event.currentTarget.value)}
            />
          )}
        </FormField>
        <RoleChoice value={role} onChange={setRole} />
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Adding …" mustStay>
          Add this person
        </DialogButtons>
      </form>
    </Dialog>
  );
}

export function PasswordDialog({ person, onClose }: { readonly person: Person; readonly onClose: () => void }) {
  const [password] = useState(newPassword);
  const [error, setError] = useState<string | null>(null);
  const [isDone, setDone] = useState(false);
  const [link, setLink] = useState<string | null>(null);
  const makeLink = async () => {
    setError(null);
    try {
      const params = { path: { id: person.id } };
      setLink((await answerOf(api.POST("/organisation/user/{id}/password-link", { params }))).url);
    } catch (refusal) {
      setError(wordsOfError(refusal));
    }
  };
  const { isBusy, onSubmit } = useSubmission(async () => {
    const path = { id: person.id };
    await answerOf(api.PUT("/organisation/user/{id}", { params: { path }, body: { password } }));
    setDone(true);
  }, setError);
  if (isDone) return <PasswordShown email={person.email} password={password} onClose={onClose} />;
  if (link !== null) return <LinkShown email={person.email} link={link} onClose={onClose} />;
  return (
    <Dialog title={`A new password for ${person.email}?`} onClose={onClose} mustStay={isBusy}>
      <form onSubmit={onSubmit}>
        <p>The old password stops working, and they are signed out everywhere.</p>
        <p>
          Or send them a link with which they choose one themselves. It works once, within a day, and until then nothing
          changes.
        </p>
        <button type="button" onClick={() => void makeLink()}>
          Make a link instead
        </button>
        <div role="alert">{error !== null && <p class="note bad">{error}</p>}</div>
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Creating it …" mustStay>
          Create a new password
        </DialogButtons>
      </form>
    </Dialog>
  );
}

function LinkShown({
  email,
  link,
  onClose,
}: {
  readonly email: string;
  readonly link: string;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`A link for ${email}`} onClose={onClose} mustStay>
      <div class="stack">
        <p>
          <strong>It is shown only once.</strong> Send it over a secure channel: whoever opens it first chooses the
          password.
        </p>
        <CopyField label="Link" value={link} />
        <footer>
          <button type="button" class="primary" onClick={onClose}>
            Done
          </button>
        </footer>
      </div>
    </Dialog>
  );
}

interface PasswordShownProps {
  readonly email: string;
  readonly password: string;
  readonly onClose: () => void;
}

function PasswordShown({ email, password, onClose }: PasswordShownProps) {
  return (
    <Dialog title={`The password of ${email}`} onClose={onClose} mustStay>
      <div class="stack">
        <p>
          <strong>It is shown only once.</strong> Send it over a secure channel; they can change it under “Your
          account”.
        </p>
        <CopyField label="Password" value={password} />
        <footer>
          <button type="button" class="primary" onClick={onClose}>
            Done
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
