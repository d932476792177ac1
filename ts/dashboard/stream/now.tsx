// The condition of the running publish: problems in words, and its figures.
import type { ComponentChildren } from "preact";
import { bitrateWords, bytesWords, durationWords } from "../parts/time-words.ts";
import { timeNow } from "../shell/clock.ts";
import { TimeText } from "../shell/time-text.tsx";
import { codecName } from "../streams/codec-name.ts";
import type { Finding, Numbers, Session } from "../streams/records.ts";
import type { StreamWatch } from "./watch.ts";

/** Nothing is wrong within the first seconds because nothing is known yet, ms. */
const SETTLED_MS = 10_000;

interface FindingsProps {
  readonly findings: readonly Finding[];
  readonly isSettled: boolean;
}

export function Now({ watch }: { readonly watch: StreamWatch }) {
  const session = watch.session.value;
  if (session === null) return null;
  const numbers = watch.numbers.value;
  const ageMs = (watch.at.value || timeNow()) - Date.parse(session.accepted_at);
  return (
    <div class="now">
      <Findings findings={session.findings} isSettled={numbers !== null && ageMs >= SETTLED_MS} />
      <dl class="facts">{factsOf(session, numbers, ageMs, watch.players.value).map(Fact)}</dl>
    </div>
  );
}

/** Announced to screen readers when the findings change, not each second. */
function Findings({ findings, isSettled }: FindingsProps) {
  const [title, text] = isSettled
    ? ["All is well", "Video and audio arrive evenly. There is nothing to do."]
    : ["Just started", "The first measurements come within seconds."];
  return (
    <div role="status" aria-label="Diagnosis">
      <ul class="findings">
        {findings.length === 0 && (
          <li class="note good">
            <strong>{title}</strong>
            <span>{text}</span>
          </li>
        )}
        {findings.map(({ code, severity, since, words, advice }) => (
          <li key={`${code} ${since} ${words}`} class={severity === "note" ? "note" : `note ${severity}`}>
            <strong>{words}</strong>
            <span>{advice}</span>
            <small class="soft">
              Since <TimeText at={since} />
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Fact([name, value]: readonly [string, ComponentChildren]) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function factsOf(
  session: Session,
  numbers: Numbers | null,
  ageMs: number,
  players: number,
): readonly (readonly [string, ComponentChildren])[] {
  const { tracks, protocol, address, bytes_in, bytes_out } = session;
  const rate = numbers?.bitrate_kbps ?? null;
  return [
    ["Live for", durationWords(ageMs)],
    ["Video", videoWords(tracks.video, numbers?.fps ?? null)],
    ["Audio", audioWords(tracks.audio)],
    ["Bitrate", rate === null ? "—" : bitrateWords(rate)],
    ["Protocol", `${protocol === "whip" ? "WHIP (browser)" : "RTMP"} from ${address}`],
    ["Players", players.toLocaleString()],
    ["Received", bytesWords(bytes_in)],
    ["Sent", bytesWords(bytes_out)],
  ];
}

export function videoWords(video: Session["tracks"]["video"], fps: number | null = null): string {
  if (video === null) return "none";
  const size = video.width === null || video.height === null ? "" : `, ${video.width}×${video.height}`;
  return `${codecName(video.codec)}${size}${fps === null ? "" : `, ${Math.round(fps)} fps`}`;
}

export function audioWords(audio: Session["tracks"]["audio"]): string {
  if (audio === null) return "none";
  const rate = audio.sample_rate === null ? "" : `, ${audio.sample_rate / 1_000} kHz`;
  const channels = { 1: ", mono", 2: ", stereo" }[audio.channels ?? 0] ?? "";
  return `${codecName(audio.codec)}${rate}${channels}`;
}
