// Creates links and tokens: for broadcasting from a browser without knowing the stream's name, or for playing a stream
// that requires a token. The result is shown once and not stored.
import { useState } from "preact/hooks";
import { CopyField } from "../../parts/copy-field.tsx";
import { FormField } from "../../parts/form-field.tsx";
import { sayProblem } from "../../parts/toasts.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { timeNow } from "../../shell/clock.ts";
import { wordsOfError } from "../../shell/errors.ts";
import { Section } from "../../shell/page.tsx";
import { TimeText } from "../../shell/time-text.tsx";
import { withArguments } from "../../streams/addresses.ts";
import { ArgumentsField } from "../../streams/arguments-field.tsx";
import { nameOf, type Stream } from "../../streams/records.ts";
import { playCommands } from "../instructions-text.ts";
import { QrCode } from "../qr-code.tsx";

type Kind = "broadcast" | "play";

const HOUR_S = 3_600;
/** The service refuses a longer validity. */
const VALIDITY_LIMIT_S = 365 * 24 * HOUR_S;
/** How far the browser's clock may be ahead of the service's. */
const SKEW_LIMIT_S = 600;
const EXPIRIES = [
  [HOUR_S, "1 hour"],
  [4 * HOUR_S, "4 hours"],
  [24 * HOUR_S, "1 day"],
  [7 * 24 * HOUR_S, "1 week"],
  [30 * 24 * HOUR_S, "30 days"],
  [VALIDITY_LIMIT_S - SKEW_LIMIT_S, "1 year"],
] as const;

interface Made {
  readonly kind: Kind;
  /** Unix seconds. */
  readonly exp: number;
  readonly token: string;
  /** The broadcast link, or the URL for players. */
  readonly address: string;
}

interface TokenMakerProps {
  readonly stream: Stream;
  readonly onMade: () => void;
}

export function TokenMaker({ stream, onMade }: TokenMakerProps) {
  const [kind, setKind] = useState<Kind>("broadcast");
  const [lastsS, setLasts] = useState<number>(EXPIRIES[2][0]);
  const [customArguments, setArguments] = useState("");
  const [made, setMade] = useState<Made | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    try {
      const exp = Math.floor(timeNow() / 1_000) + lastsS;
      setMade(
        kind === "broadcast" ? await broadcastLink(stream, customArguments, exp) : await playAddress(stream, exp),
      );
      onMade();
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
    setBusy(false);
  };
  const choose = (next: Kind) => {
    setKind(next);
    setMade(null);
  };
  return (
    <Section
      title="Links and tokens"
      lead="For people and players that need access to this stream only, for a limited time. Anyone with the link has that access: treat it like a password."
      id="tokens"
    >
      <form class="token-maker" onSubmit={(event) => void submit(event)}>
        <fieldset class="choices">
          <legend>Purpose</legend>
          <label>
            <input type="radio" name="kind" checked={kind === "broadcast"} onChange={() => choose("broadcast")} />
            Broadcast from a browser
            <small>A link that opens camera and microphone, also on a phone.</small>
          </label>
          <label>
            <input type="radio" name="kind" checked={kind === "play"} onChange={() => choose("play")} />
            Play the stream
            <small>An RTMP address for a player, when playing needs a token.</small>
          </label>
        </fieldset>
        <div class="stack">
          <FormField label="Valid for">
            {(field) => (
              <select
                {...field}
                value={String(lastsS)}
                onChange={(event) => setLasts(Number(event.currentTarget.value))}
              >
                {EXPIRIES.map(([seconds, words]) => (
                  <option key={seconds} value={String(seconds)}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </FormField>
          {kind === "broadcast" && (
            <ArgumentsField
              label="Custom arguments"
              help="What your webhook expects from a broadcaster. They are part of the link and reach your webhook unchanged."
              value={customArguments}
              onChange={setArguments}
            />
          )}
          <div class="row">
            <button type="submit" class="primary" aria-disabled={isBusy}>
              {isBusy ? "Creating it …" : kind === "broadcast" ? "Create the link" : "Create the address"}
            </button>
          </div>
        </div>
      </form>
      <div role="status">{made !== null && <MadeToken {...made} />}</div>
    </Section>
  );
}

function MadeToken({ kind, exp, token, address }: Made) {
  const until = (
    <p>
      Valid until <TimeText at={exp * 1_000} />. It is shown only once.
    </p>
  );
  if (kind === "play") {
    return (
      <div class="made stack">
        {until}
        <CopyField label="Address for players" value={address} />
        {playCommands({ play: address }).map(({ title, text }) => (
          <CopyField key={title} label={`${title} command`} value={text} isCode />
        ))}
      </div>
    );
  }
  return (
    <div class="made with-qr">
      <div class="stack">
        {until}
        <CopyField label="Broadcast link" value={address} />
        <CopyField label="Web token" value={token} />
        <p>
          <a class="button" href={address} target="_blank" rel="noopener">
            Open it here
          </a>
        </p>
      </div>
      <figure>
        <QrCode text={address} label="QR code of the broadcast link" />
        <figcaption>
          {isThisMachine(address)
            ? "Opens on this machine only: a phone needs the address of this Headgate in its network"
            : "For the camera of a phone"}
        </figcaption>
      </figure>
    </div>
  );
}

/** Names of the loopback interface, which on a phone are the phone itself. */
function isThisMachine(address: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(address).hostname);
}

async function broadcastLink(stream: Stream, customArguments: string, exp: number): Promise<Made> {
  const streamname = withArguments(nameOf(stream), customArguments);
  const body = { streamname, ingesturl: stream.ingest.rtmp.url, exp };
  const { data } = await answerOf(api.POST("/webcaster", { body }));
  return { kind: "broadcast", exp, token: data.token, address: `${location.origin}/broadcast#token=${data.token}` };
}

async function playAddress(stream: Stream, exp: number): Promise<Made> {
  const call = api.POST("/stream/{id}/play-token", { params: { path: { id: stream.id } }, body: { exp } });
  const { token, streamname } = await answerOf(call);
  const [player] = stream.playout.rtmp;
  return { kind: "play", exp, token, address: `${player?.url ?? stream.ingest.rtmp.url}/${streamname}` };
}
