// The tags of a stream, with a dialog for people who may change them.
import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { Icon } from "../parts/icons.tsx";
import { may } from "../shell/session.ts";
import { type ShowStream, setTags } from "../streams/actions.ts";
import { addressWith } from "../streams/filters.tsx";
import type { Stream } from "../streams/records.ts";
import { TagsField } from "../streams/tags-field.tsx";

export function StreamTags({ stream, show }: { readonly stream: Stream; readonly show: ShowStream }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {stream.tags.map((tag) => (
        <a key={tag} class="tag" href={addressWith({ state: null, tags: [tag], search: "" })}>
          {tag}
        </a>
      ))}
      {may("change_tags") && (
        <button type="button" class="quiet small" onClick={() => setOpen(true)}>
          <Icon name="tag" />
          {stream.tags.length === 0 ? "Add tags" : "Change tags"}
        </button>
      )}
      {isOpen && <EditTags stream={stream} show={show} onClose={() => setOpen(false)} />}
    </>
  );
}

interface EditTagsProps {
  readonly stream: Stream;
  readonly show: ShowStream;
  readonly onClose: () => void;
}

function EditTags({ stream, show, onClose }: EditTagsProps) {
  const [before] = useState<readonly string[]>(stream.tags);
  const [tags, change] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    if (await setTags(stream, before, tags, show)) onClose();
    else setBusy(false);
  };
  return (
    <Dialog title="Tags" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <TagsField tags={tags} onChange={change} help="Enter or a comma ends a tag." />
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Saving …">
          Save tags
        </DialogButtons>
      </form>
    </Dialog>
  );
}
