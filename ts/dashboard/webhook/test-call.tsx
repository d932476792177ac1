// A test call: the webhook is called about a publish that does not exist, and the answer has no effect.
import { useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Section } from "../shell/page.tsx";
import { CallResult } from "./call-result.tsx";

export function TestSection({ onCalled }: { readonly onCalled: () => void }) {
  const [given, setGiven] = useState("");
  const [result, setResult] = useState<Records["WebhookCall"] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const test = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    setResult(null);
    try {
      setResult(await answerOf(api.POST("/organisation/webhook/test", { body: { arguments: given || null } })));
      onCalled();
    } catch (refusal) {
      setError(wordsOfError(refusal));
    }
    setBusy(false);
  };
  return (
    <Section title="Test it">
      <form class="form" onSubmit={(event) => void test(event)}>
        <FormField
          label="Custom arguments"
          error={error}
          help="What a broadcaster would put after the ? of the stream name. The call is signed like any other and has client id 0; the answer has no effect."
        >
          {(field) => (
            <input
              {...field}
              type="text"
              class="mono"
              placeholder="passcode=s3cret"
              autocomplete="off"
              spellcheck={false}
              value={given}
              onInput={(event) => setGiven(event.currentTarget.value)}
            />
          )}
        </FormField>
        <div class="actions">
          <button type="submit" aria-disabled={isBusy}>
            {isBusy ? "Calling the webhook …" : "Call the webhook"}
          </button>
        </div>
        <div role="status">{result !== null && <CallResult result={result} call="publish" isTest />}</div>
        {result !== null && <a href={addressOf("deliveries", result.id)}>The request and your server’s response</a>}
      </form>
    </Section>
  );
}
