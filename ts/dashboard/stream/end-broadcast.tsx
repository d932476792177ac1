// Ends the running publish, with a reason for the broadcaster. The broadcaster may reconnect immediately;
// only a lock prevents that.
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { FormField } from "../parts/form-field.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";

/** The API's limit. */
const REASON_LIMIT = 200;
const STANDARD = "Publish was ended by the operator";

interface EndBroadcastProps {
  readonly name: string;
  readonly clientId: number;
  readonly onClose: () => void;
}

export function EndBroadcast({ name, clientId, onClose }: EndBroadcastProps) {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isReadable = /^[\x20-\x7e]*$/.test(reason);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy || !isReadable) return;
    setBusy(true);
    try {
      const body = reason.trim() === "" ? {} : { reason: reason.trim() };
      await answerOf(api.POST("/session/{client_id}/kick", { params: { path: { client_id: clientId } }, body }));
      say("The broadcast is ended");
      onClose();
    } catch (error) {
      sayProblem(wordsOfError(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`End the broadcast of ${name}?`} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          Viewers and upstreams lose it now. The broadcaster can start again at once; to prevent that, stop and lock the
          stream instead.
        </p>
        <FormField
          label="Reason"
          help={`Shown to the broadcaster. Default: “${STANDARD}”.`}
          error={isReadable ? null : "English letters, digits and punctuation only: encoders show nothing else."}
        >
          {(field) => (
            <input
              {...field}
              type="text"
              maxLength={REASON_LIMIT}
              autocomplete="off"
              placeholder="Off air"
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          )}
        </FormField>
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger" aria-disabled={isBusy} disabled={!isReadable}>
            {isBusy ? "Ending …" : "End broadcast"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
