// Creates a stream: no input is required. Its own page then explains how to broadcast to it.
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FormField } from "../parts/form-field.tsx";
import { sayProblem } from "../parts/toasts.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { useSubmission } from "../shell/submission.ts";
import { TagsField } from "./tags-field.tsx";

export function CreateStream({ onClose }: { readonly onClose: () => void }) {
  const { route } = useLocation();
  const [tags, setTags] = useState<readonly string[]>([]);
  const [title, setTitle] = useState("");
  const [externalId, setExternalId] = useState("");
  const { isBusy, onSubmit } = useSubmission(async () => {
    const { id } = await answerOf(api.POST("/stream", { body: { tags: [...tags], title, external_id: externalId } }));
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
        <FormField label="Title" help="Optional. For people: lists and the broadcast page show it.">
          {(field) => (
            <input {...field} maxLength={200} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
          )}
        </FormField>
        <FormField label="Your own id" help="Optional. Unique: your systems find the stream by it.">
          {(field) => (
            <input
              {...field}
              maxLength={128}
              value={externalId}
              onInput={(event) => setExternalId(event.currentTarget.value)}
            />
          )}
        </FormField>
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
