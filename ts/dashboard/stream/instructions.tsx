// How to broadcast to the stream and how to watch it: addresses, and what to enter or run in each program.
import { useId, useState } from "preact/hooks";
import { CopyField } from "../parts/copy-field.tsx";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import type { ShowStream } from "../streams/actions.ts";
import { type Addresses, addressesOf } from "../streams/addresses.ts";
import { ArgumentsField } from "../streams/arguments-field.tsx";
import type { Stream } from "../streams/records.ts";
import { PublishKey } from "./connect/publish-key.tsx";
import {
  type Command,
  ffmpegCommands,
  gstreamerCommands,
  obsSteps,
  obsWhipSteps,
  playCommands,
  type Step,
} from "./instructions-text.ts";
import { QrCode } from "./qr-code.tsx";
import { tabAddress } from "./stream-tabs.tsx";

const PROGRAMS = ["Addresses", "OBS", "ffmpeg", "GStreamer", "Browser", "Watch it"] as const;
type Program = (typeof PROGRAMS)[number];

export function Instructions({ stream, show }: { readonly stream: Stream; readonly show: ShowStream }) {
  const id = useId();
  const [program, setProgram] = useState<Program>("Addresses");
  const [customArguments, setArguments] = useState("");
  const addresses = addressesOf(stream, customArguments);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = PROGRAMS.at((PROGRAMS.indexOf(program) + step) % PROGRAMS.length) ?? program;
    setProgram(next);
    document.getElementById(`${id}-${PROGRAMS.indexOf(next)}`)?.focus();
  };
  return (
    <Section title="How to broadcast" lead="With this stream's own values: copy, paste, go live." id="instructions">
      <div class="tabs" role="tablist" aria-label="Program" onKeyDown={onKeyDown}>
        {PROGRAMS.map((name, index) => (
          <button
            key={name}
            id={`${id}-${index}`}
            type="button"
            role="tab"
            aria-selected={program === name}
            aria-controls={`${id}-panel`}
            tabIndex={program === name ? 0 : -1}
            onClick={() => setProgram(name)}
          >
            {name}
          </button>
        ))}
      </div>
      <div
        class="stack"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${PROGRAMS.indexOf(program)}`}
        data-program={program}
      >
        <For program={program} addresses={addresses} links={tabAddress(stream.id, "links")} />
      </div>
      <PublishKey stream={stream} show={show} />
      <details class="arguments">
        <summary>Custom arguments</summary>
        <ArgumentsField
          label="After the stream name"
          help="What your webhook expects from a broadcaster, such as a passcode. They are added to everything above."
          value={customArguments}
          onChange={setArguments}
        />
      </details>
    </Section>
  );
}

interface ForProps {
  readonly program: Program;
  readonly addresses: Addresses;
  /** Where links are created. */
  readonly links: string;
}

function For({ program, addresses, links }: ForProps) {
  switch (program) {
    case "Addresses":
      return <AddressList {...addresses} />;
    case "OBS":
      return (
        <>
          <Steps steps={obsSteps(addresses)} />
          <p class="soft">OBS 30 and newer can also send by WHIP, which reaches viewers sooner:</p>
          <Steps steps={obsWhipSteps(addresses)} />
        </>
      );
    case "ffmpeg":
      return <Commands commands={ffmpegCommands(addresses)} />;
    case "GStreamer":
      return <Commands commands={gstreamerCommands(addresses)} />;
    case "Browser":
      return <InBrowser streamKey={addresses.key} links={links} />;
    case "Watch it":
      return (
        <>
          <p>While the stream is live, any RTMP player shows it.</p>
          <Commands commands={playCommands(addresses)} />
        </>
      );
  }
}

function AddressList({ server, key, rtmp, rtmps, whip }: Addresses) {
  return (
    <dl class="facts addresses">
      <dt>RTMP</dt>
      <dd>
        <CopyField label="RTMP address" value={rtmp} />
      </dd>
      <dt>RTMPS</dt>
      <dd>
        {rtmps === null ? (
          <span class="soft">This Headgate has no certificate for it.</span>
        ) : (
          <CopyField label="RTMPS address" value={rtmps} />
        )}
      </dd>
      <dt>WHIP</dt>
      <dd>
        <CopyField label="WHIP address" value={whip} />
      </dd>
      <dt>RTMP server only</dt>
      <dd>
        <CopyField label="RTMP server" value={server} />
      </dd>
      <dt>Stream key only</dt>
      <dd>
        <CopyField label="Stream key" value={key} />
      </dd>
    </dl>
  );
}

function Steps({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <dl class="facts">
      {steps.map(({ where, value, isCopied }) => (
        <>
          <dt key={where}>{where}</dt>
          <dd key={`${where} value`}>
            {isCopied ? <CopyField label={where} value={value} /> : <strong>{value}</strong>}
          </dd>
        </>
      ))}
    </dl>
  );
}

function Commands({ commands }: { readonly commands: readonly Command[] }) {
  return (
    <>
      {commands.map(({ title, text }) => (
        <div key={title} class="command">
          <h3>{title}</h3>
          <CopyField label={title} value={text} isCode />
        </div>
      ))}
    </>
  );
}

function InBrowser({ streamKey, links }: { readonly streamKey: string; readonly links: string }) {
  const page = `${location.origin}/broadcast`;
  return (
    <div class="with-qr">
      <div class="stack">
        <p>
          Open this page on any computer or phone, enter the stream key, and go live with camera, microphone or screen:
        </p>
        <CopyField label="Broadcast page" value={page} />
        <CopyField label="Stream key" value={streamKey} />
        {may("create_token") && (
          <p>
            Or <a href={links}>create a link</a> that needs no name: it is valid for a limited time, and its QR code
            opens it on a phone.
          </p>
        )}
      </div>
      <figure>
        <QrCode text={page} label="QR code of the broadcast page" />
        <figcaption>The page, for a phone</figcaption>
      </figure>
    </div>
  );
}
