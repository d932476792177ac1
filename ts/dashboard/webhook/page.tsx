// The webhook: its URL and health, a test call, the secret with which its calls are signed, and the second address.
import { useState } from "preact/hooks";
import { answerOf, api } from "../shell/client.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { AddressSection } from "./address.tsx";
import { CopiesSection } from "./copies.tsx";
import { HealthSection } from "./health.tsx";
import { SecretSection } from "./secret.tsx";
import { TestSection } from "./test-call.tsx";

export function WebhookPage() {
  /** Number of test calls made here: each may change the webhook's health. */
  const [calls, setCalls] = useState(0);
  const organisation = useLoaded((signal) => answerOf(api.GET("/organisation", { signal })));
  return (
    <Page
      title="Webhook"
      lead="Your own server decides about each publish: 200 lets it go ahead, anything else refuses it. It is also called every 30 seconds while a stream is running, and once when it has ended."
    >
      <LoadedView of={organisation} words="Loading the webhook …">
        {(record) => (
          <>
            <AddressSection organisation={record} onChange={organisation.set} />
            {record.webhook !== null && (
              <div class="grid-2">
                <HealthSection key={record.webhook} calls={calls} />
                {may("change_webhook") && <TestSection onCalled={() => setCalls((before) => before + 1)} />}
              </div>
            )}
            <SecretSection
              isSet={record.webhook_secret_set}
              onMade={() => organisation.set({ ...record, webhook_secret_set: true })}
            />
            <CopiesSection />
          </>
        )}
      </LoadedView>
    </Page>
  );
}
