// The webhook's URL: visible to all; set, changed and removed by administrators.
import { useState } from "preact/hooks";
import { confirm } from "../parts/confirm.tsx";
import { CopyField } from "../parts/copy-field.tsx";
import { FormField } from "../parts/form-field.tsx";
import { Empty } from "../parts/states.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";

type Organisation = Records["Organisation"];

interface AddressSectionProps {
  readonly organisation: Organisation;
  readonly onChange: (organisation: Organisation) => void;
}

export function AddressSection({ organisation, onChange }: AddressSectionProps) {
  const { webhook } = organisation;
  const [isEditing, setEditing] = useState(false);
  const mayChange = may("change_webhook");
  const remove = async () => {
    const does = await confirm({
      title: "Remove the webhook?",
      text: "From then on publishes are not checked: anyone who knows the name of a stream can publish to it. Running publishes continue.",
      does: "Remove the webhook",
    });
    if (!does) return;
    try {
      onChange(await answerOf(api.DELETE("/organisation/webhook")));
      say("The webhook is removed");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const saved = (next: Organisation) => {
    setEditing(false);
    onChange(next);
    say("The webhook is saved");
  };
  if (isEditing) {
    return (
      <Section title="Address">
        <AddressForm webhook={webhook} onSaved={saved} onCancel={() => setEditing(false)} />
      </Section>
    );
  }
  if (webhook === null) {
    return (
      <Section title="Address" plain>
        <Empty
          title="No webhook is set"
          icon="webhook"
          actions={
            mayChange && (
              <button type="button" class="primary" onClick={() => setEditing(true)}>
                Set the webhook
              </button>
            )
          }
        >
          Publishes are not checked: anyone who knows the name of a stream can publish to it, so treat names as
          passwords.
        </Empty>
      </Section>
    );
  }
  return (
    <Section
      title="Address"
      actions={
        mayChange && (
          <>
            <button type="button" onClick={() => setEditing(true)}>
              Change
            </button>
            <button type="button" class="danger" onClick={() => void remove()}>
              Remove
            </button>
          </>
        )
      }
    >
      <CopyField label="Webhook address" value={webhook} />
    </Section>
  );
}

interface AddressFormProps {
  readonly webhook: string | null;
  readonly onSaved: (organisation: Organisation) => void;
  readonly onCancel: () => void;
}

function AddressForm({ webhook, onSaved, onCancel }: AddressFormProps) {
  const [given, setGiven] = useState(webhook ?? "");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const save = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (given.trim() === "") return setError("The address is missing.");
    setBusy(true);
    try {
      onSaved(await answerOf(api.PUT("/organisation/webhook", { body: { webhook: given.trim() } })));
    } catch (refusal) {
      setBusy(false);
      setError(wordsOfError(refusal));
    }
  };
  return (
    <form class="form" onSubmit={(event) => void save(event)}>
      <FormField
        label="Address"
        error={error}
        help="Must begin with https:// and be reachable from the internet. Its query may contain a secret: other roles do not see it."
      >
        {(field) => (
          <input
            {...field}
            type="url"
            placeholder="https://customer.example/headgate"
            autocomplete="off"
            spellcheck={false}
            value={given}
            ref={(input) => input?.focus()}
            onInput={(event) => setGiven(event.currentTarget.value)}
          />
        )}
      </FormField>
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
