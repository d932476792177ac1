// The health of the webhook: the outcome of the latest call, and the latest failure.
import { useEffect } from "preact/hooks";
import { StatusPill } from "../parts/status-pill.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { CALL_WORDS, longWords, shortWords, toneOf } from "./answer-words.ts";

type Delivery = Records["Delivery"];

/** `calls`: a change of the number reloads the section, in which the previous calls stay meanwhile. */
export function HealthSection({ calls }: { readonly calls: number }) {
  const state = useLoaded(async (signal) => {
    const newest = (failed?: "true") =>
      answerOf(
        api.GET("/organisation/webhook/deliveries", {
          params: { query: { quantity: 1, ...(failed ? { failed } : {}) } },
          signal,
        }),
      );
    const [[latest], [failure]] = await Promise.all([newest(), newest("true")]);
    return { latest: latest ?? null, failure: failure ?? null };
  });
  const { reload } = state;
  useEffect(() => {
    if (calls > 0) void reload();
  }, [calls, reload]);
  return (
    <Section title="Status" actions={<a href="/dashboard/deliveries">All deliveries</a>}>
      <LoadedView of={state} words="Loading the latest calls …">
        {({ latest, failure }) =>
          latest === null ? (
            <p class="soft">It was not called in the last 30 days.</p>
          ) : (
            <div class="stack">
              <Call title="Latest call" delivery={latest} />
              {failure === null ? (
                <p class="soft">No call was refused or failed in the last 30 days.</p>
              ) : (
                failure.id !== latest.id && <Call title="Latest refusal or failure" delivery={failure} />
              )}
            </div>
          )
        }
      </LoadedView>
    </Section>
  );
}

function Call({ title, delivery }: { readonly title: string; readonly delivery: Delivery }) {
  return (
    <div class="call">
      <p class="row">
        <strong>{title}</strong>
        <StatusPill tone={toneOf(delivery)}>{shortWords(delivery)}</StatusPill>
        <a href={addressOf("deliveries", delivery.id)}>
          {CALL_WORDS[delivery.call]}, <TimeText at={delivery.last_at} />
        </a>
      </p>
      <p class="soft">
        {longWords(delivery, delivery.call)} It took {delivery.latency_ms} ms.
      </p>
      {delivery.reason !== null && <blockquote>{delivery.reason}</blockquote>}
    </div>
  );
}
