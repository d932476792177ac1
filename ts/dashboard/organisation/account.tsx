// The signed-in person's account: role, own password, and the colour scheme in this browser.
import { useId, useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { NewPasswordField } from "../parts/new-password-field.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Page, Section } from "../shell/page.tsx";
import { ROLE_WORDS } from "../shell/permissions.ts";
import { leave, me, signOut } from "../shell/session.ts";
import { setTheme, type Theme, theme } from "../shell/theme.ts";

export function AccountPage() {
  const { email, role, organisation } = me();
  return (
    <Page
      title="Your account"
      actions={
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      }
    >
      <div class="grid-2">
        <Section title="Who you are">
          <dl class="facts">
            <dt>E-mail address</dt>
            <dd>{email}</dd>
            <dt>Organisation</dt>
            <dd>{organisation.name}</dd>
            <dt>Role</dt>
            <dd>
              {ROLE_WORDS[role].name}
              <br />
              <small>{ROLE_WORDS[role].may}</small>
            </dd>
          </dl>
        </Section>
        <Section title="Colours">
          <ThemeChoice />
        </Section>
      </div>
      <Section title="Password">
        {me().password_set ? (
          <PasswordForm />
        ) : (
          <p class="soft">
            You have none: you sign in at your organisation’s identity provider. If you need one, an administrator can
            give it to you on the page People.
          </p>
        )}
      </Section>
    </Page>
  );
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "Same as the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function ThemeChoice() {
  const name = useId();
  return (
    <fieldset class="choices">
      <legend class="unseen">Colours</legend>
      {THEMES.map(([value, words]) => (
        <label key={value}>
          <input type="radio" name={name} checked={theme.value === value} onChange={() => setTheme(value)} />
          <span>{words}</span>
        </label>
      ))}
    </fieldset>
  );
}

function PasswordForm() {
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const change = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await answerOf(api.PUT("/me/password", { body: { current, password: next } }));
      leave("password");
    } catch (refusal) {
      setError(wordsOfError(refusal));
      setBusy(false);
    }
  };
  return (
    <form class="form narrow" onSubmit={(event) => void change(event)}>
      <input type="text" autocomplete="username" value={me().email ?? ""} readOnly hidden />
      <FormField label="Current password">
        {(field) => (
          <input
            {...field}
            type="password"
            autocomplete="current-password"
            required
            value={current}
            onInput={(event) => setCurrent(event.currentTarget.value)}
          />
        )}
      </FormField>
      <NewPasswordField help="Afterwards you sign in again, here and everywhere." value={next} onChange={setNext} />
      <div role="alert">{error !== null && <p class="note bad">{error}</p>}</div>
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Changing …" : "Change the password"}
        </button>
      </div>
    </form>
  );
}
