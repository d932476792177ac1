// The webhook's URL: visible to all; set, changed and removed by administrators.
import { useState } from "preact/hooks";
import { CopyField } from "../parts/copy-field.tsx";
import { Empty } from "../parts/states.tsx";
import { say } from "../parts/toasts.tsx";
import { answerOf, api, type Records } from "../shell/client.ts";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { AddressButtons } from "./address-buttons.tsx";
import { UrlForm } from "./url-form.tsx";

type Organisation = Records["Organisation"];

interface AddressSectionProps {
  readonly organisation: Organisation;
  readonly onChange: (organisation: Organisation) => void;
}

export function AddressSection({ organisation, onChange }: AddressSectionProps) {
  const { webhook } = organisation;
  const [isEditing, setEditing] = useState(false);
  const mayChange = may("change_webhook");
  const saved = (next: Organisation) => {
    setEditing(false);
    onChange(next);
    say("The webhook is saved");
  };
  if (isEditing) {
    return (
      <Section title="Address">
        <UrlForm
          label="Address"
          help="Must begin with https:// and be reachable from the internet. Its query may contain a secret: other roles do not see it."
          placeholder="https://customer.example/headgate"
          url={webhook}
          save={async (url) => saved(await answerOf(api.PUT("/organisation/webhook", { body: { webhook: url } })))}
          onCancel={() => setEditing(false)}
        />
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
          <AddressButtons
            what="the webhook"
            consequence="From then on publishes are not checked: anyone who knows the name of a stream can publish to it. Running publishes continue."
            onEdit={() => setEditing(true)}
            remove={async () => onChange(await answerOf(api.DELETE("/organisation/webhook")))}
          />
        )
      }
    >
      <CopyField label="Webhook address" value={webhook} />
    </Section>
  );
}
