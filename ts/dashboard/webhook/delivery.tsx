// One delivery: the request and its response, why a publish was denied, and a replay of the call.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { BusyButton } from "../parts/busy-button.tsx";
import { CopyField } from "../parts/copy-field.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { Table } from "../parts/table.tsx";
import { sayProblem } from "../parts/toasts.tsx";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page, Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import { CALL_WORDS, denialWords, longWords, shortWords, toneOf } from "./answer-words.ts";
import { CallResult } from "./call-result.tsx";
import { fieldsOf } from "./form-body.ts";

type Delivery = Records["Delivery"];

export function DeliveryPage({ id }: { readonly id: string }) {
  const loaded = useLoaded(
    async (signal) => {
      const path = { id };
      const [delivery, settings] = await Promise.all([
        answerOf(api.GET("/organisation/webhook/deliveries/{id}", { params: { path }, signal })),
        answerOf(api.GET("/organisation/settings", { signal })),
      ]);
      return { delivery, settings };
    },
    [id],
  );
  const title = loaded.value === null ? "Delivery" : CALL_WORDS[loaded.value.delivery.call];
  return (
    <Page title={title} back={{ href: "/dashboard/deliveries", title: "Deliveries" }}>
      <LoadedView of={loaded} words="Loading the delivery …">
        {({ delivery, settings }) => (
          <>
            {delivery.call === "publish" && !delivery.is_copy && (
              <Denial delivery={delivery} unreachable={settings.publish_on_hook_unreachable} />
            )}
            <div class="grid-2">
              <Answer delivery={delivery} />
              <About delivery={delivery} />
            </div>
            <Request delivery={delivery} />
            {may("change_webhook") && <Replay delivery={delivery} />}
          </>
        )}
      </LoadedView>
    </Page>
  );
}

function Denial({ delivery, unreachable }: { readonly delivery: Delivery; readonly unreachable: "deny" | "allow" }) {
  const words = denialWords(delivery, unreachable);
  if (words === null) return null;
  return (
    <div class="note attention section">
      <p>
        <strong>Why this publish did not go ahead:</strong> {words}
      </p>
      {delivery.reason !== null && <blockquote>{delivery.reason}</blockquote>}
    </div>
  );
}

function Answer({ delivery }: { readonly delivery: Delivery }) {
  return (
    <Section title="Answer">
      <div class="stack">
        <p class="row">
          <StatusPill tone={toneOf(delivery)}>{shortWords(delivery)}</StatusPill>
          <span class="soft">after {delivery.latency_ms} ms</span>
        </p>
        <p>{longWords(delivery, delivery.call)}</p>
        {delivery.reason !== null && delivery.call !== "publish" && <blockquote>{delivery.reason}</blockquote>}
        {delivery.response !== null && <Response response={delivery.response} />}
      </div>
    </Section>
  );
}

function Response({ response: { headers, body, is_cut } }: { readonly response: NonNullable<Delivery["response"]> }) {
  return (
    <>
      {body === null && <p class="soft">The body was compressed, although the request did not ask for it.</p>}
      {body !== null && body !== "" && (
        <figure class="response">
          <figcaption class="soft">{is_cut ? "The beginning of its body" : "Its body"}</figcaption>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
          <pre tabIndex={0}>{body}</pre>
        </figure>
      )}
      <details>
        <summary>Headers of the response</summary>
        <dl class="facts">
          {headers.map(({ name, value }, index) => (
            <Fragment key={`${index} ${name}`}>
              <dt class="mono">{name}</dt>
              <dd class="mono">{value}</dd>
            </Fragment>
          ))}
        </dl>
      </details>
    </>
  );
}

function About({ delivery }: { readonly delivery: Delivery }) {
  const { name, clientid, attempts } = delivery;
  return (
    <Section title="About">
      <dl class="facts">
        <dt>Stream name</dt>
        <dd>
          <a class="mono" href={filteredAddress("/dashboard/deliveries", { name })}>
            {name}
          </a>
        </dd>
        <dt>Client id</dt>
        <dd>
          <a class="mono" href={filteredAddress("/dashboard/deliveries", { clientid: String(clientid) })}>
            {clientid}
          </a>
        </dd>
        <dt>First sent</dt>
        <dd>
          <TimeText at={delivery.first_at} />
        </dd>
        <dt>Last sent</dt>
        <dd>
          <TimeText at={delivery.last_at} />
        </dd>
        <dt>Attempts</dt>
        <dd>{attempts}</dd>
        <dt>Webhook id</dt>
        <dd class="mono">{delivery.id}</dd>
      </dl>
    </Section>
  );
}

function Request({ delivery }: { readonly delivery: Delivery }) {
  const { url, body } = delivery.request;
  return (
    <Section title="Request" lead="Values of custom arguments are masked here. Your server received them unmasked.">
      <div class="stack">
        <CopyField label="Address" value={url} />
        <CopyField label="Body" value={body} />
        <Table
          caption="Fields of the body"
          rows={fieldsOf(body)}
          keyOf={({ position }) => position}
          columns={[
            { title: "Field", isHead: true, cell: ({ field }) => <span class="mono">{field}</span> },
            { title: "Value", cell: ({ value }) => <span class="mono">{value}</span> },
            { title: "From", cell: ({ isCustom }) => (isCustom ? "the broadcaster" : "Headgate") },
          ]}
        />
      </div>
    </Section>
  );
}

function Replay({ delivery }: { readonly delivery: Delivery }) {
  const [result, setResult] = useState<Records["WebhookCall"] | null>(null);
  const replay = async () => {
    setResult(null);
    try {
      const path = { id: delivery.id };
      setResult(await answerOf(api.POST("/organisation/webhook/deliveries/{id}/replay", { params: { path } })));
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title="Send it again"
      lead="Sends the same body and webhook-id to your current webhook. The answer has no effect on any publish."
      actions={
        <BusyButton onPress={replay} busy="Sending …">
          Send it again
        </BusyButton>
      }
    >
      <div role="status">
        {result !== null && <CallResult result={result} call={delivery.call} isCopy={delivery.is_copy} isTest />}
      </div>
    </Section>
  );
}
