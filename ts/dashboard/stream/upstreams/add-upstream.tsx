// Adds an upstream: for every broadcast of the stream, or only for the running one.
import { useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog.tsx";
import { DialogButtons } from "../../parts/dialog-buttons.tsx";
import { FormField } from "../../parts/form-field.tsx";
import { say } from "../../parts/toasts.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { useSubmission } from "../../shell/submission.ts";

interface AddUpstreamProps {
  readonly streamId: string;
  /** null: no publish is running. */
  readonly clientId: number | null;
  readonly onAdded: () => void;
  readonly onClose: () => void;
}

export function AddUpstream({ streamId, clientId, onAdded, onClose }: AddUpstreamProps) {
  const [url, setUrl] = useState("");
  const [label, setLabel] = useState("");
  const [isOnce, setOnce] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const { isBusy, onSubmit } = useSubmission(async () => {
    setError(null);
    const body = { url: url.trim(), label: label.trim() === "" ? null : label.trim() };
    await (isOnce && clientId !== null
      ? answerOf(api.POST("/session/{client_id}/upstream", { params: { path: { client_id: clientId } }, body }))
      : answerOf(api.POST("/stream/{id}/upstream", { params: { path: { id: streamId } }, body })));
    say("The upstream is added");
    onAdded();
    onClose();
  }, setError);
  return (
    <Dialog title="Add upstream" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <FormField
          label="Address, with the stream key"
          help="The full address from the other service: server, a slash and stream key, even if the server contains a “?”. The key is stored encrypted and never shown again."
          error={error}
        >
          {(field) => (
            <input
              {...field}
              type="text"
              inputMode="url"
              required
              maxLength={2_048}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              placeholder="rtmps://live.example/app/stream-key"
              value={url}
              onInput={(event) => setUrl(event.currentTarget.value)}
            />
          )}
        </FormField>
        <FormField label="Label" help="Optional.">
          {(field) => (
            <input
              {...field}
              type="text"
              maxLength={100}
              autocomplete="off"
              placeholder="Main channel"
              value={label}
              onInput={(event) => setLabel(event.currentTarget.value)}
            />
          )}
        </FormField>
        {clientId !== null && (
          <fieldset class="choices">
            <legend>For</legend>
            <label>
              <input type="radio" name="for" checked={!isOnce} onChange={() => setOnce(false)} />
              Every broadcast of this stream
              <small>Starts at once for a running one.</small>
            </label>
            <label>
              <input type="radio" name="for" checked={isOnce} onChange={() => setOnce(true)} />
              This broadcast only
              <small>Removed when it ends.</small>
            </label>
          </fieldset>
        )}
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Adding …">
          Add upstream
        </DialogButtons>
      </form>
    </Dialog>
  );
}
