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
        title: "Make a new secret?",
        text: "Calls are signed with both secrets for 24 hours, so that nothing stops meanwhile. After that the former one is worth nothing.",
        does: "Make a new secret",
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
          ? "Every call is signed. Verify the signature, so that nobody else can tell your server that a stream runs."
          : "Calls are signed as soon as there is a secret. The first one is made with the webhook, or here."
      }
      actions={
        may("change_webhook") && (
          <BusyButton onPress={make} busy="Making a secret …">
            {isSet ? "Make a new secret" : "Make the secret"}
          </BusyButton>
        )
      }
    >
      <div class="stack">
        <div role="status">
          {secret !== null && (
            <div class="note good stack">
              <p>
                <strong>This is the secret. It is shown this once:</strong> keep it where your server keeps its secrets.
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
          Verify the bytes as they came, before anything parses them. The same event may come twice with one{" "}
          <code>webhook-id</code>: remember it. Any library of{" "}
          <a href="https://www.standardwebhooks.com/" target="_blank" rel="noreferrer">
            Standard Webhooks
          </a>{" "}
          verifies these calls, too.
        </p>
      </div>
    </Section>
  );
}
