// The signing secret: created or rotated, shown once, with instructions for verifying a signature.
import { useState } from "preact/hooks";
import { BusyButton } from "../parts/busy-button.tsx";
import { confirm } from "../parts/confirm.tsx";
import { CopyField } from "../parts/copy-field.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { SNIPPETS } from "./snippets.ts";

export function SecretSection({ isSet, onMade }: { readonly isSet: boolean; readonly onMade: () => void }) {
  const [secret, setSecret] = useState<string | null>(null);
  const make = async () => {
    const does =
      !isSet ||
      (await confirm({
        title: "Create a new secret?",
        text: "Calls are signed with both secrets for 24 hours, so nothing is interrupted. After that, the old secret is no longer used.",
        does: "Create a new secret",
      }));
    if (!does) return;
    try {
      setSecret((await answerOf(api.POST("/organisation/webhook/secret"))).secret);
      onMade();
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title="Signatures"
      lead={
        isSet
          ? "Every call is signed. Verify the signature, so that nobody else can send events to your server."
          : "Calls are signed as soon as there is a secret. The first one is created with the webhook, or here."
      }
      actions={
        may("change_webhook") && (
          <BusyButton onPress={make} busy="Creating a secret …">
            {isSet ? "Create a new secret" : "Create the secret"}
          </BusyButton>
        )
      }
    >
      <div class="stack">
        <div role="status">
          {secret !== null && (
            <div class="note good stack">
              <p>
                <strong>This is the new secret. It is shown only once:</strong> store it with your server's other
                secrets.
              </p>
              <CopyField label="Webhook secret" value={secret} />
            </div>
          )}
        </div>
        <Tabs
          label="Verify a signature in"
          tabs={SNIPPETS.map(({ language, code }) => ({
            title: language,
            content: <CopyField key={language} label={`Verification in ${language}`} value={code} isCode />,
          }))}
        />
        <p class="help">
          Verify the bytes as received, before parsing them. The same event may arrive twice with the same{" "}
          <code>webhook-id</code>: remember ids. Any library for{" "}
          <a href="https://www.standardwebhooks.com/" target="_blank" rel="noreferrer">
            Standard Webhooks
          </a>{" "}
          can verify these calls.
        </p>
      </div>
    </Section>
  );
}
