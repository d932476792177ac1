// Creates a stream: no input is required. Its own page then explains how to broadcast to it.
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { sayProblem } from "../parts/toasts.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { useSubmission } from "../shell/submission.ts";
import { TagsField } from "./tags-field.tsx";

export function CreateStream({ onClose }: { readonly onClose: () => void }) {
  const { route } = useLocation();
  const [tags, setTags] = useState<readonly string[]>([]);
  const { isBusy, onSubmit } = useSubmission(async () => {
    const { id } = await answerOf(api.POST("/stream", { body: { tags: [...tags] } }));
    onClose();
    route(addressOf("streams", id));
  }, sayProblem);
  return (
    <Dialog title="New stream" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <p>
          It gets a unique name that cannot be guessed. You then see how to broadcast to it with OBS, ffmpeg, GStreamer
          or a browser.
        </p>
        <TagsField
          tags={tags}
          onChange={setTags}
          help="Optional. You can search for streams by tag and limit an API key to a tag."
        />
        <DialogButtons onClose={onClose} isBusy={isBusy} busy="Creating …">
          Create stream
        </DialogButtons>
      </form>
    </Dialog>
  );
}
