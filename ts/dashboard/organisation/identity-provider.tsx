// The organisation's identity provider: where people may sign in besides here, and which of its groups have which role.
// Shown to administrators only.
import { useState } from "preact/hooks";
import { confirm } from "../parts/confirm.tsx";
import { CopyField } from "../parts/copy-field.tsx";
import { FormField } from "../parts/form-field.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { ROLE_WORDS, type Role } from "../shell/permissions.ts";
import { useSubmission } from "../shell/submission.ts";

type Settings = Records["IdentityProviderSettings"];
type Provider = Records["IdentityProvider"];

const ROLES = Object.keys(ROLE_WORDS) as readonly Role[];
const TITLE = "Sign-in with your identity provider";
const LEAD =
  "People sign in at your own OpenID Connect provider, such as Keycloak or Entra ID, and get their role from it at every sign-in. Passwords stay valid.";

export function IdentityProviderSection() {
  const loaded = useLoaded((signal) => answerOf(api.GET("/organisation/identity-provider", { signal })));
  const [isEditing, setEditing] = useState(false);
  const provider = loaded.value?.identity_provider ?? null;
  const remove = async () => {
    const does = await confirm({
      title: "Remove the identity provider?",
      text: "Everyone who has signed in there is signed out. People without a password cannot sign in until they have one.",
      does: "Remove the identity provider",
    });
    if (!does) return;
    try {
      loaded.set(await answerOf(api.DELETE("/organisation/identity-provider")));
      say("The identity provider is removed");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title={TITLE}
      lead={LEAD}
      actions={
        loaded.value !== null &&
        !isEditing && (
          <>
            <button type="button" onClick={() => setEditing(true)}>
              {provider === null ? "Set up" : "Change"}
              <span class="unseen"> the identity provider</span>
            </button>
            {provider !== null && (
              <button type="button" class="danger" onClick={() => void remove()}>
                Remove<span class="unseen"> the identity provider</span>
              </button>
            )}
          </>
        )
      }
    >
      <LoadedView of={loaded} words="Loading the identity provider …">
        {(settings) =>
          isEditing ? (
            <ProviderForm
              settings={settings}
              onCancel={() => setEditing(false)}
              onSaved={(next) => {
                setEditing(false);
                loaded.set(next);
                say("The identity provider is saved");
              }}
            />
          ) : (
            <Present settings={settings} />
          )
        }
      </LoadedView>
    </Section>
  );
}

function Present({ settings }: { readonly settings: Settings }) {
  const { identity_provider: provider, sign_in_url } = settings;
  if (provider === null) return <p class="help">None is set up: people sign in with e-mail address and password.</p>;
  return (
    <>
      <dl class="facts">
        <dt>Issuer</dt>
        <dd class="mono">{provider.issuer}</dd>
        <dt>Client id</dt>
        <dd class="mono">{provider.client_id}</dd>
        {ROLES.map((role) => (
          <>
            <dt>{ROLE_WORDS[role].name}</dt>
            <dd>{wordsOfValues(provider, role)}</dd>
          </>
        ))}
      </dl>
      <div class="field">
        <p class="setting-name">Sign-in link for people of your organisation</p>
        <CopyField label="Sign-in link" value={sign_in_url} />
        <p class="help">The audit log shows who was refused, and why.</p>
      </div>
    </>
  );
}

function wordsOfValues(provider: Provider, role: Role): string {
  const values = valuesOf(provider, role);
  return values.length === 0 ? "nobody" : `${provider.role_claim} contains ${values.join(" or ")}`;
}

function valuesOf(provider: Provider | null, role: Role): readonly string[] {
  return (provider?.roles ?? []).filter((rule) => rule.role === role).map(({ value }) => value);
}

interface ProviderFormProps {
  readonly settings: Settings;
  readonly onCancel: () => void;
  readonly onSaved: (settings: Settings) => void;
}

function ProviderForm({ settings, onCancel, onSaved }: ProviderFormProps) {
  const provider = settings.identity_provider;
  const [issuer, setIssuer] = useState(provider?.issuer ?? "");
  const [clientId, setClientId] = useState(provider?.client_id ?? "");
  const [secret, setSecret] = useState("");
  const [scope, setScope] = useState(provider?.scope ?? "openid email profile");
  const [claim, setClaim] = useState(provider?.role_claim ?? "groups");
  const [values, setValues] = useState<Readonly<Record<Role, string>>>({
    administrator: valuesOf(provider, "administrator").join("\n"),
    user: valuesOf(provider, "user").join("\n"),
    readonly: valuesOf(provider, "readonly").join("\n"),
  });
  const [error, setError] = useState<string | null>(null);
  const { isBusy, onSubmit } = useSubmission(async () => {
    setError(null);
    const roles = ROLES.flatMap((role) => linesOf(values[role]).map((value) => ({ value, role })));
    const body = {
      issuer: issuer.trim(),
      client_id: clientId.trim(),
      scope: scope.trim(),
      role_claim: claim.trim(),
      roles,
      ...(secret === "" ? {} : { client_secret: secret }),
    };
    onSaved(await answerOf(api.PUT("/organisation/identity-provider", { body })));
  }, setError);
  const isSecretKept = provider?.client_secret_set === true;
  return (
    <form class="form" onSubmit={onSubmit}>
      <div>
        <p class="help">Register this redirect URI at the provider:</p>
        <CopyField label="Redirect URI" value={settings.redirect_uri} />
      </div>
      <TextField
        label="Issuer"
        help="The address by which the provider names itself, such as https://sso.customer.example/realms/staff."
        value={issuer}
        onChange={setIssuer}
      />
      <TextField label="Client id" value={clientId} onChange={setClientId} />
      <FormField label="Client secret" help={isSecretKept ? "Empty: the present one stays." : undefined}>
        {(field) => (
          <input
            {...field}
            type="password"
            autocomplete="new-password"
            value={secret}
            onInput={(event) => setSecret(event.currentTarget.value)}
          />
        )}
      </FormField>
      <TextField label="Scopes" help="Separated by spaces." value={scope} onChange={setScope} />
      <TextField
        label="Claim for roles"
        help="The claim whose values decide the role, such as groups or realm_access.roles."
        value={claim}
        onChange={setClaim}
      />
      {ROLES.map((role) => (
        <FormField
          key={role}
          label={`Values for the role ${ROLE_WORDS[role].name}`}
          help={`One on each line. ${ROLE_WORDS[role].may}`}
        >
          {(field) => (
            <textarea
              {...field}
              rows={2}
              spellcheck={false}
              value={values[role]}
              onInput={(event) => setValues({ ...values, [role]: event.currentTarget.value })}
            />
          )}
        </FormField>
      ))}
      <p class="help">Whoever has none of these values is refused.</p>
      <div role="alert">{error !== null && <p class="note bad">{error}</p>}</div>
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

interface TextFieldProps {
  readonly label: string;
  readonly help?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function TextField({ label, help, value, onChange }: TextFieldProps) {
  return (
    <FormField label={label} help={help}>
      {(field) => (
        <input
          {...field}
          type="text"
          required
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}

const linesOf = (text: string) => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  ),
];
