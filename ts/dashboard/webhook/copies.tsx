// The second webhook: its address, what it gets, its secret, a test call, and whether it fails.
import { useState } from "preact/hooks";
import { BusyButton } from "../parts/busy-button.tsx";
import { CopyField } from "../parts/copy-field.tsx";
import { FormField } from "../parts/form-field.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import { AddressButtons } from "./address-buttons.tsx";
import { CALL_WORDS, shortWords, toneOf } from "./answer-words.ts";
import { CallResult } from "./call-result.tsx";
import { UrlForm } from "./url-form.tsx";

type Copies = Records["WebhookCopies"];

const EVENT_WORDS: Readonly<Record<Copies["events"], string>> = {
  all: "All events and alerts",
  alerts: "Alerts only",
};

export function CopiesSection() {
  const copies = useLoaded((signal) => answerOf(api.GET("/organisation/webhook/copies", { signal })));
  const [isEditing, setEditing] = useState(false);
  return (
    <Section
      title="Copies"
      lead="A second address, for example of a staging server or for analytics. It gets copies of all calls, and alerts when a stream has no media, an upstream is lost or the webhook fails. Its answers decide nothing, and no publish waits for it."
      actions={
        copies.value !== null &&
        copies.value.webhook !== null &&
        !isEditing && <Actions onEdit={() => setEditing(true)} onChange={copies.set} />
      }
    >
      <LoadedView of={copies} words="Loading the second address …">
        {(record) => {
          if (isEditing)
            return (
              <CopiesForm
                copies={record}
                onCancel={() => setEditing(false)}
                onSaved={(next) => {
                  setEditing(false);
                  copies.set(next);
                  say("The second address is saved");
                }}
              />
            );
          if (record.webhook === null)
            return (
              <div class="stack">
                <p class="soft">No second address is set.</p>
                {may("change_webhook") && (
                  <div class="actions">
                    <button type="button" onClick={() => setEditing(true)}>
                      Set a second address
                    </button>
                  </div>
                )}
              </div>
            );
          return <Present copies={record} onCalled={() => void copies.reload()} />;
        }}
      </LoadedView>
    </Section>
  );
}

interface ActionsProps {
  readonly onEdit: () => void;
  readonly onChange: (copies: Copies) => void;
}

function Actions({ onEdit, onChange }: ActionsProps) {
  return (
    <>
      <a href="/dashboard/deliveries?copies=true">Its deliveries</a>
      {may("change_webhook") && (
        <AddressButtons
          what="the second address"
          consequence="Copies and alerts that it has not got yet are not sent any more. Broadcasts are not affected."
          onEdit={onEdit}
          remove={async () => onChange(await answerOf(api.DELETE("/organisation/webhook/copies")))}
        />
      )}
    </>
  );
}

function Present({ copies, onCalled }: { readonly copies: Copies; readonly onCalled: () => void }) {
  const { webhook, events, failure, secret_set } = copies;
  const [secret, setSecret] = useState<string | null>(null);
  const [result, setResult] = useState<Records["WebhookCall"] | null>(null);
  const make = async () => {
    try {
      setSecret((await answerOf(api.POST("/organisation/webhook/copies/secret"))).secret);
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const test = async () => {
    try {
      setResult(await answerOf(api.POST("/organisation/webhook/copies/test", { body: {} })));
      onCalled();
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <div class="stack">
      <CopyField label="Second address" value={webhook ?? ""} />
      <p class="row">
        <strong>It gets</strong> {EVENT_WORDS[events].toLowerCase()}
      </p>
      {failure === null ? (
        <p class="soft">Its latest call did not fail.</p>
      ) : (
        <p class="row">
          <StatusPill tone={toneOf(failure)}>{shortWords(failure)}</StatusPill>
          <a href={addressOf("deliveries", failure.delivery)}>
            {CALL_WORDS[failure.call]}, <TimeText at={failure.at} />
          </a>
        </p>
      )}
      {may("change_webhook") && (
        <div class="actions">
          <BusyButton onPress={test} busy="Calling the second address …">
            Call the second address
          </BusyButton>
          <BusyButton onPress={make} busy="Creating a secret …">
            {secret_set ? "Create a new secret for it" : "Create its secret"}
          </BusyButton>
        </div>
      )}
      <div role="status">
        {result !== null && <CallResult result={result} call="publish" isCopy isTest />}
        {secret !== null && (
          <div class="note good stack">
            <p>
              <strong>This is its new secret. It is shown only once.</strong> Calls are signed with the old one, too,
              for 24 hours.
            </p>
            <CopyField label="Secret of the second address" value={secret} />
          </div>
        )}
      </div>
    </div>
  );
}

interface CopiesFormProps {
  readonly copies: Copies;
  readonly onSaved: (copies: Copies) => void;
  readonly onCancel: () => void;
}

function CopiesForm({ copies, onSaved, onCancel }: CopiesFormProps) {
  const [events, setEvents] = useState(copies.events);
  return (
    <UrlForm
      label="Second address"
      help="Must begin with https:// and be reachable from the internet."
      placeholder="https://staging.customer.example/headgate"
      url={copies.webhook}
      save={async (webhook) =>
        onSaved(await answerOf(api.PUT("/organisation/webhook/copies", { body: { webhook, events } })))
      }
      onCancel={onCancel}
    >
      <FormField label="It gets">
        {(field) => (
          <select
            {...field}
            value={events}
            onChange={(event) => setEvents(event.currentTarget.value as Copies["events"])}
          >
            {Object.entries(EVENT_WORDS).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        )}
      </FormField>
    </UrlForm>
  );
}
