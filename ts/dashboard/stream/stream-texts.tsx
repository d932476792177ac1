// The title of a stream and the organisation's own id of it, with a dialog for people who may change them.
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FormField } from "../parts/form-field.tsx";
import { Icon } from "../parts/icons.tsx";
import { may } from "../shell/session.ts";
import { type ShowStream, setTexts } from "../streams/actions.ts";
import type { Stream } from "../streams/records.ts";

/** The API's limits, characters. */
const TITLE_LIMIT = 200;
const EXTERNAL_ID_LIMIT = 128;

interface StreamTextsProps {
  readonly stream: Stream;
  readonly show: ShowStream;
}

export function StreamTexts({ stream, show }: StreamTextsProps) {
  const [isOpen, setOpen] = useState(false);
  const { title, external_id: externalId } = stream;
  return (
    <>
      {title !== null && <bdi>{title}</bdi>}
      {externalId !== null && (
        <span>
          Your id <bdi class="mono">{externalId}</bdi>
        </span>
      )}
      {may("change_titles") && (
        <button type="button" class="quiet small" onClick={() => setOpen(true)}>
          <Icon name="edit" />
          {title === null ? "Add a title" : "Change the title"}
        </button>
      )}
      {isOpen && <EditTexts stream={stream} show={show} onClose={() => setOpen(false)} />}
    </>
  );
}

function EditTexts({ stream, show, onClose }: StreamTextsProps & { readonly onClose: () => void }) {
  const [title, setTitle] = useState(stream.title ?? "");
  const [externalId, setExternalId] = useState(stream.external_id ?? "");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    if (await setTexts(stream, { title: title.trim(), externalId: externalId.trim() }, show)) onClose();
    else setBusy(false);
  };
  return (
    <Dialog title="Title and id" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <FormField label="Title" help="For people: lists and the broadcast page show it. Empty: none.">
          {(field) => (
            <input
              {...field}
              maxLength={TITLE_LIMIT}
              value={title}
              onInput={(event) => setTitle(event.currentTarget.value)}
            />
          )}
        </FormField>
        <FormField label="Your own id" help="Unique: your systems find the stream by it. Empty: none.">
          {(field) => (
            <input
              {...field}
              maxLength={EXTERNAL_ID_LIMIT}
              value={externalId}
              onInput={(event) => setExternalId(event.currentTarget.value)}
            />
          )}
        </FormField>
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Saving …">
          Save
        </DialogButtons>
      </form>
    </Dialog>
  );
}
