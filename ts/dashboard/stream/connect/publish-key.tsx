// The publish key of a stream: whether publishes need it, and a new one. The addresses contain it.
import { useState } from "preact/hooks";
import { CopyField } from "../../parts/copy-field.tsx";
import { FormField } from "../../parts/form-field.tsx";
import { may } from "../../shell/session.ts";
import { renewPublishKey, type ShowStream, setPublishKey } from "../../streams/actions.ts";
import type { Stream } from "../../streams/records.ts";

const CHOICES = [
  ["", "As in the settings of the organisation", null],
  ["yes", "Need the publish key", true],
  ["no", "Do not need the publish key", false],
] as const;

export function PublishKey({ stream, show }: { readonly stream: Stream; readonly show: ShowStream }) {
  const [isBusy, setBusy] = useState(false);
  const { key } = stream.ingest;
  const isReader = key !== null && !may("create_stream");
  const run = async (work: Promise<void>) => {
    setBusy(true);
    await work;
    setBusy(false);
  };
  return (
    <details class="arguments" open={key !== null}>
      <summary>Publish key</summary>
      {key !== null && !isReader && <CopyField label="Publish key" value={key} />}
      <p class="soft">
        {key === null
          ? "None is needed: who knows the stream name can ask to publish."
          : isReader
            ? "Publishing needs a key, which your role does not see."
            : "The addresses above contain it. Never hand it to viewers: they need the stream name only."}
      </p>
      {may("control_stream") && (
        <>
          <FormField label="Publishes of this stream" help="From the next publish on; what is live goes on.">
            {(field) => (
              <select
                {...field}
                class="medium"
                disabled={isBusy}
                value={CHOICES.find(([, , value]) => value === stream.publish_key)?.[0] ?? ""}
                onChange={(event) => {
                  const [, , value] = CHOICES.find(([name]) => name === event.currentTarget.value) ?? CHOICES[0];
                  void run(setPublishKey(stream, value, show));
                }}
              >
                {CHOICES.map(([name, words]) => (
                  <option key={name} value={name}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </FormField>
          {key !== null && (
            <div class="row">
              <button type="button" aria-disabled={isBusy} onClick={() => void run(renewPublishKey(stream, show))}>
                Renew the key …
              </button>
            </div>
          )}
        </>
      )}
    </details>
  );
}
