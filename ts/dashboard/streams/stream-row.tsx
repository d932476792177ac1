// One stream in the list: what it is, and its condition while it is live. Only the row's own numbers render it again.
// biome-ignore-all lint/a11y/useSemanticElements: a table of which only some rows are there cannot lay itself out
import type { Signal } from "@preact/signals";
import { bitrateWords, counted, durationWords } from "../parts/time-words.ts";
import { addressOf } from "../shell/addresses.ts";
import { now } from "../shell/clock.ts";
import { TimeText } from "../shell/time-text.tsx";
import type { ShowStream } from "./actions.ts";
import { codecName } from "./codec-name.ts";
import { FINDING_TITLES } from "./finding-titles.ts";
import { MenuButton } from "./menu.tsx";
import { actionsOf } from "./menu-items.ts";
import { type LiveRow, nameOf, type Stream } from "./records.ts";
import { StatePill } from "./state-pill.tsx";

interface StreamRowProps {
  readonly stream: Stream;
  readonly live: Signal<LiveRow | null>;
  /** Position in the list, from 0. */
  readonly index: number;
  /** Pixels. */
  readonly top: number;
  readonly height: number;
  readonly show: ShowStream;
  readonly onTag: (tag: string) => void;
  readonly open: (path: string) => void;
}

export function StreamRow({ stream, live, index, top, height, show, onTag, open }: StreamRowProps) {
  const row = stream.state === "live" ? live.value : null;
  const name = nameOf(stream);
  const address = addressOf("streams", stream.id);
  const hasThreeLines = row !== null && row.condition !== "good" && stream.title !== null;
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: its link has the focus
    <div
      class="stream-row"
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)`, height: `${height}px` }}
    >
      <div role="cell" class="stream-state">
        <StatePill state={stream.state} />
      </div>
      <div role="cell" class={hasThreeLines ? "stream-name three-lines" : "stream-name"}>
        <a href={address} title={name}>
          {name}
        </a>
        {row !== null && <Condition row={row} />}
        {stream.title !== null && (
          <bdi class="stream-title" title={stream.title}>
            {stream.title}
          </bdi>
        )}
      </div>
      <div role="cell" class="stream-tags">
        {stream.tags.map((tag) => (
          <button
            key={tag}
            type="button"
            class="tag"
            title={`Only streams with the tag ${tag}`}
            onClick={() => onTag(tag)}
          >
            {tag}
          </button>
        ))}
      </div>
      <div role="cell" class="stream-video">
        {row !== null && videoWords(row)}
      </div>
      <div role="cell" class="stream-rate">
        {row?.bitrate_kbps != null && bitrateWords(row.bitrate_kbps)}
        {row?.fps != null && <span class="soft"> · {Math.round(row.fps)} fps</span>}
      </div>
      <div role="cell" class="stream-players">
        {row !== null && <Readers row={row} />}
      </div>
      <div role="cell" class="stream-since">
        {row === null ? (
          <TimeText at={stream.state === "created" ? stream.created_at : stream.updated_at} />
        ) : (
          <TimeText
            at={row.accepted_at}
            beside={`live for ${durationWords(now.value - Date.parse(row.accepted_at))}`}
          />
        )}
      </div>
      <div role="cell" class="stream-menu">
        <MenuButton label={`Actions for ${name}`} items={() => actionsOf(stream, show, () => open(address))} />
      </div>
    </div>
  );
}

/** What is wrong: the worst finding, and how many others; all of them in words in the tooltip. */
function Condition({ row: { condition, findings = [] } }: { readonly row: LiveRow }) {
  if (condition === "good") return null;
  const serious = findings.filter(({ severity }) => severity !== "note");
  const [worst, ...others] = serious;
  // A node of an older version, or a newer one with another code, says less.
  const title = (worst && FINDING_TITLES[worst.code]) ?? (condition === "bad" ? "Bad" : "Needs attention");
  return (
    <span class="condition" data-tone={condition} title={serious.map(({ words }) => words).join("\n")}>
      {title}
      {others.length > 0 && `, ${others.length} more`}
    </span>
  );
}

function videoWords({ video, audio }: LiveRow): string {
  if (video === null) return audio === null ? "No media yet" : `Audio only, ${codecName(audio.codec)}`;
  const size = video.width === null ? "" : ` ${video.width}×${video.height}`;
  return `${codecName(video.codec)}${size}`;
}

function Readers({ row: { players, upstreams } }: { readonly row: LiveRow }) {
  const pushes = upstreams.connected + upstreams.failing;
  return (
    <>
      {counted(players, "player")}
      {pushes > 0 && upstreams.failing === 0 && <span class="soft"> · {counted(pushes, "upstream")}</span>}
      {upstreams.failing > 0 && (
        <span class="failing" title={`${upstreams.failing} of ${counted(pushes, "upstream")} down`}>
          {counted(upstreams.failing, "upstream")} down
        </span>
      )}
    </>
  );
}
