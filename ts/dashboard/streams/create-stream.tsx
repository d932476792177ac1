// Makes a stream: nothing has to be given. Its own page then says how to broadcast to it.
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Dialog } from "../parts/dialog.tsx";
import { sayProblem } from "../parts/toasts.tsx";
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { TagsField } from "./tags-field.tsx";

export function CreateStream({ onClose }: { readonly onClose: () => void }) {
  const { route } = useLocation();
  const [tags, setTags] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    try {
      const { id } = await answerOf(api.POST("/stream", { body: { tags: [...tags] } }));
      onClose();
      route(addressOf("streams", id));
    } catch (error) {
      sayProblem(wordsOfError(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New stream" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          It gets a name of its own that nobody can guess. You then see how to broadcast to it with OBS, ffmpeg,
          GStreamer or a browser.
        </p>
        <TagsField
          tags={tags}
          onChange={setTags}
          help="Not needed. Streams are found by them, and an API key can be limited to one."
        />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy}>
            {isBusy ? "Creating …" : "Create stream"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
