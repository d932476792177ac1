// Ends the running publish, with a reason for the broadcaster, and refuses the stream for a while, because encoders
// reconnect by themselves. For longer than that it has to be locked.
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { FormField } from "../parts/form-field.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";

/** The API's limit. */
const REASON_LIMIT = 200;
/** How long encoders are kept out, s. */
const REFUSE_S = 30;
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
      const body = { ...(reason.trim() === "" ? {} : { reason: reason.trim() }), refuse_s: REFUSE_S };
      await answerOf(api.POST("/session/{client_id}/kick", { params: { path: { client_id: clientId } }, body }));
      say(`The broadcast is ended; new ones are refused for ${REFUSE_S} s`);
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
          Viewers and upstreams lose it now. Browsers stay ended, and encoders, which reconnect by themselves, are
          refused for {REFUSE_S} s. To keep the broadcaster out for longer, stop and lock the stream instead.
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
