// The logo that broadcasters see on /broadcast: shown as they see it, replaced by a file, removed.
import { useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";

/** As the API says, bytes. */
const SIZE_LIMIT = 100_000;

export function LogoSection() {
  const loaded = useLoaded((signal) => answerOf(api.GET("/organisation/logo", { signal })));
  const [error, setError] = useState<string | null>(null);
  const set = async (input: HTMLInputElement) => {
    const [file] = input.files ?? [];
    input.value = ""; // the same file can be chosen again once it is smaller
    if (file === undefined) return;
    if (file.size > SIZE_LIMIT) return setError("The file is larger than 100 kB.");
    setError(null);
    try {
      const body = { png: await base64Of(file) };
      loaded.set(await answerOf(api.PUT("/organisation/logo", { body })));
      say("The logo is saved");
    } catch (problem) {
      setError(wordsOfError(problem));
    }
  };
  const remove = async () => {
    try {
      loaded.set(await answerOf(api.DELETE("/organisation/logo")));
      say("The logo is removed");
    } catch (problem) {
      sayProblem(wordsOfError(problem));
    }
  };
  return (
    <Section title="Logo" lead="Broadcasters see it on the broadcast page, with the organisation’s name.">
      <LoadedView of={loaded} words="Loading the logo …">
        {({ logo }) => (
          <div class="logo-setting">
            {logo === null ? <p class="soft">No logo</p> : <img src={logo.url} alt="The logo" class="logo" />}
            {may("change_settings") && (
              <>
                <FormField
                  label="PNG file"
                  help="At most 100 kB, 512 pixels wide and high. It is shown on white."
                  error={error}
                >
                  {(field) => (
                    <input
                      {...field}
                      type="file"
                      accept="image/png"
                      onChange={(event) => void set(event.currentTarget)}
                    />
                  )}
                </FormField>
                {logo !== null && (
                  <button type="button" onClick={() => void remove()}>
                    Remove logo
                  </button>
                )}
              </>
            )}
          </div>
        )}
      </LoadedView>
    </Section>
  );
}

async function base64Of(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
