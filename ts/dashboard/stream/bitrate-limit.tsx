// The bitrate limit of a running WHIP publish. It is not offered for RTMP, which cannot ask an encoder to obey one.
import { useEffect, useState } from "preact/hooks";
import { BusyButton } from "../parts/busy-button.tsx";
import { FormField } from "../parts/form-field.tsx";
import { bitrateWords } from "../parts/time-words.ts";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Section } from "../shell/page.tsx";
import type { Session } from "../streams/records.ts";

/** The API's limit, kbit/s. */
const LIMIT_KBPS = 1_000_000;

interface BitrateLimitProps {
  readonly session: Session;
  readonly onChange: (session: Partial<Session>) => void;
}

export function BitrateLimit({ session, onChange }: BitrateLimitProps) {
  const { client_id: clientId, max_bitrate_kbps: limit } = session;
  const [given, setGiven] = useState(limit === 0 ? "" : String(limit));
  useEffect(() => setGiven(limit === 0 ? "" : String(limit)), [limit]);
  const kbps = given.trim() === "" ? 0 : Number(given);
  const isValid = Number.isInteger(kbps) && kbps >= 0 && kbps <= LIMIT_KBPS;
  const save = async () => {
    try {
      const call = api.PUT("/session/{client_id}/bitrate", {
        params: { path: { client_id: clientId } },
        body: { max_bitrate_kbps: kbps },
      });
      const { max_bitrate_kbps } = await answerOf(call);
      onChange({ max_bitrate_kbps });
      say(max_bitrate_kbps === 0 ? "The limit is removed" : `The sender stays below ${bitrateWords(max_bitrate_kbps)}`);
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title="Bitrate limit"
      lead="Sent to the broadcaster within a second and in force until this broadcast ends. The limits of your plan and settings still apply."
    >
      <div class="limit-row">
        <FormField
          label="At most, kbps"
          help="Empty: no limit for this broadcast."
          error={isValid ? null : "A whole number of kilobits per second."}
        >
          {(field) => (
            <input
              {...field}
              type="text"
              inputMode="numeric"
              placeholder="2500"
              value={given}
              onInput={(event) => setGiven(event.currentTarget.value)}
            />
          )}
        </FormField>
        <BusyButton onPress={save} busy="Setting the limit …" disabled={!isValid || kbps === limit}>
          Set the limit
        </BusyButton>
      </div>
    </Section>
  );
}
