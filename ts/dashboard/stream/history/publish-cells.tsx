// What the history of a stream shows of a publish: duration, bytes, why it ended, and why it was denied.
import { whoWords } from "../../lists/who-words.ts";
import { StatusPill, type Tone } from "../../parts/status-pill.tsx";
import { bytesWords, durationWords } from "../../parts/time-words.ts";
import { filteredAddress } from "../../shell/addresses.ts";
import { may } from "../../shell/session.ts";
import { audioWords, videoWords } from "../now.tsx";
import type { Publish } from "./merged.ts";

const STATES: Readonly<Record<Publish["state"], readonly [Tone, string]>> = {
  asking: ["attention", "Asking"],
  denied: ["bad", "Denied"],
  live: ["live", "Live"],
  ended: ["quiet", "Ended"],
};

export function State({ state }: Publish) {
  const [tone, words] = STATES[state];
  return <StatusPill tone={tone}>{words}</StatusPill>;
}

interface MoreProps {
  readonly publish: Publish;
  readonly explain: (clientId: number) => void;
}

/** Its timeline and webhook deliveries. */
export function More({ publish: { client_id }, explain }: MoreProps) {
  return (
    <>
      <button type="button" class="quiet small" onClick={() => explain(client_id)}>
        Timeline<span class="unseen"> of the publish {client_id}</span>
      </button>
      {may("view_deliveries") && (
        <a class="second" href={filteredAddress("/dashboard/deliveries", { clientid: String(client_id) })}>
          Deliveries<span class="unseen"> of the publish {client_id}</span>
        </a>
      )}
    </>
  );
}

export function Outcome({ denial, end, end_words, accepted_at, ended_at, dropped_frames }: Publish) {
  if (denial !== null) {
    return (
      <>
        <span class="said">{denial.reason}</span>
        <small class="second">{denial.words}</small>
      </>
    );
  }
  if (accepted_at === null) return <span class="soft">Waiting for your webhook's answer.</span>;
  if (ended_at === null) return <span class="soft">Running.</span>;
  return (
    <>
      {end_words ?? "It ended."}
      {end !== null && end.who !== null && <small class="second">By {whoWords(end.who)}</small>}
      <small class="second">
        After {durationWords(Date.parse(ended_at) - Date.parse(accepted_at))}
        {dropped_frames !== null &&
          dropped_frames > 0 &&
          `, ${dropped_frames.toLocaleString()} frames dropped on the way out`}
      </small>
    </>
  );
}

export function Source({ protocol, address, continues }: Publish) {
  return (
    <>
      {protocol === null ? "—" : protocol === "whip" ? "WHIP" : "RTMP"}
      {address !== null && <small class="second mono nowrap">{address}</small>}
      {continues !== null && <small class="second">Took over from the lost publish {continues}</small>}
    </>
  );
}

export function Media({ video, audio }: Publish) {
  if (video === null && audio === null) return <span class="soft">—</span>;
  return (
    <>
      {videoWords(video)}
      <small class="second">{audioWords(audio)}</small>
    </>
  );
}

export function Bytes({ state, bytes_in, bytes_out }: Publish) {
  if (state === "denied" || state === "asking") return <span class="soft">—</span>;
  return `${bytesWords(bytes_in)} / ${bytesWords(bytes_out)}`;
}
