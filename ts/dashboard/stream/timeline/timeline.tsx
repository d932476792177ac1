// The timeline of one broadcast, from its request to its end, in a dialog above the history.
import { CopyField } from "../../parts/copy-field.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { durationWords } from "../../parts/time-words.ts";
import { answerOf, api } from "../../shell/client.ts";
import { useLoaded } from "../../shell/loaded.ts";
import { LoadedView } from "../../shell/loaded-view.tsx";
import { TimeText } from "../../shell/time-text.tsx";

/** Offsets below this are shown to the millisecond, since they belong to the start, ms. */
const EXACT_MS = 60_000;

interface TimelineProps {
  readonly clientId: number;
  readonly onClose: () => void;
}

export function Timeline({ clientId, onClose }: TimelineProps) {
  const loaded = useLoaded(
    (signal) =>
      answerOf(api.GET("/session/{client_id}/timeline", { params: { path: { client_id: clientId } }, signal })),
    [clientId],
  );
  return (
    <Dialog title="What happened" onClose={onClose} wide>
      <LoadedView of={loaded} words="Loading what happened …">
        {({ moments, trace_id, is_watched, state }) => (
          <div class="stack">
            <ol class="timeline">
              {moments.map(({ at, offset_ms, what, text }, index) => (
                <li key={`${index} ${what}`}>
                  <TimeText at={at} beside={offsetWords(offset_ms)} />
                  <span>{text}</span>
                </li>
              ))}
            </ol>
            {!is_watched && state === "ended" && <p class="soft">No details of its media are kept.</p>}
            <dl class="facts addresses">
              <dt>Client id</dt>
              <dd>
                <CopyField label="Client id" value={String(clientId)} />
              </dd>
              {trace_id !== null && (
                <>
                  <dt>Trace id</dt>
                  <dd>
                    <CopyField label="Trace id" value={trace_id} />
                  </dd>
                </>
              )}
            </dl>
          </div>
        )}
      </LoadedView>
    </Dialog>
  );
}

function offsetWords(ms: number): string {
  return ms < EXACT_MS ? `+${(ms / 1_000).toFixed(3)} s` : `+${durationWords(ms)}`;
}
