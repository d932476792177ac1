// The test of one upstream before the show: what is done, then each step with its time, or why it failed.
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog.tsx";
import { Loading } from "../../parts/states.tsx";
import { StatusPill } from "../../parts/status-pill.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { wordsOfError } from "../../shell/errors.ts";
import { CAUSES, STEPS, type Tested } from "./upstream-words.ts";

interface TestUpstreamProps {
  readonly streamId: string;
  readonly upstream: { readonly id: string; readonly label: string | null; readonly url: string };
  readonly onClose: () => void;
}

export function TestUpstream({ streamId, upstream, onClose }: TestUpstreamProps) {
  const [result, setResult] = useState<Tested | string | null>(null);
  const run = async () => {
    setResult(null);
    const path = { id: streamId, upstream_id: upstream.id };
    const call = api.POST("/stream/{id}/upstream/{upstream_id}/test", { params: { path } });
    setResult(await answerOf(call).catch(wordsOfError));
  };
  useEffect(() => void run(), [upstream.id]);
  return (
    <Dialog title={`Test ${upstream.label ?? upstream.url}`} onClose={onClose}>
      <p class="soft">
        Connects as a broadcast does, and publishes two seconds of colour bars and silence: what is live there shows
        them.
      </p>
      <div role="status">
        {result === null && <Loading words="Testing, at most 15 seconds …" />}
        {typeof result === "string" && <p class="field-error">{result}</p>}
        {result !== null && typeof result !== "string" && <Steps result={result} />}
      </div>
      <footer>
        <button type="button" disabled={result === null} onClick={() => void run()}>
          Test again
        </button>
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

function Steps({ result: { steps, cause, detail } }: { readonly result: Tested }) {
  return (
    <>
      <ol class="test-steps">
        {steps.map(({ step, ms, outcome }) => (
          <li key={step}>
            <StatusPill tone={outcome === "ok" ? "good" : "bad"}>{outcome === "ok" ? "Done" : "Failed"}</StatusPill>
            <span>{STEPS[step]}</span>
            <span class="soft number">{ms} ms</span>
          </li>
        ))}
      </ol>
      {cause === null ? (
        <p>The upstream has accepted the test picture.</p>
      ) : (
        <p class="field-error">
          <strong>{CAUSES[cause]}</strong>: {detail}
        </p>
      )}
    </>
  );
}
