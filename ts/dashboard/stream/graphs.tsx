// Measurements over time: six graphs with one choice of the span and a shared crosshair.
import type { ReadonlySignal } from "@preact/signals";
import { useState } from "preact/hooks";
import { bitrateWords } from "../parts/time-words.ts";
import { Section } from "../shell/page.tsx";
import { LiveGraph } from "./live-graph.tsx";
import type { NumberName, Series } from "./series.ts";

const SPANS = [
  [60_000, "1 minute"],
  [300_000, "5 minutes"],
  [3_600_000, "1 hour"],
] as const;

interface GraphText {
  readonly name: NumberName;
  readonly title: string;
  /** Formats a value for people. */
  readonly words: (value: number) => string;
  /** The axis reaches at least this value. */
  readonly least: number;
  /** Why there may be no values. */
  readonly missing: string;
}

const RTMP_HAS_NONE = "RTMP does not measure it.";
const GRAPHS: readonly GraphText[] = [
  { name: "bitrate_kbps", least: 100, title: "Bitrate", words: bitrateWords, missing: "Not known yet." },
  { name: "fps", least: 10, title: "Frame rate", words: (fps) => `${fps.toFixed(0)} fps`, missing: "No video yet." },
  {
    name: "gop_ms",
    least: 1000,
    title: "Between keyframes",
    words: (ms) => `${(ms / 1_000).toFixed(1)} s`,
    missing: "No keyframes yet.",
  },
  {
    name: "rtt_ms",
    least: 20,
    title: "Round trip",
    words: (ms) => `${ms.toFixed(0)} ms`,
    missing: "The sender does not report it.",
  },
  {
    name: "loss_percent",
    least: 1,
    title: "Loss",
    words: (percent) => `${percent.toFixed(1)} %`,
    missing: RTMP_HAS_NONE,
  },
  {
    name: "skew_ms",
    least: 50,
    title: "Video ahead of audio",
    words: (ms) => `${ms.toFixed(0)} ms`,
    missing: RTMP_HAS_NONE,
  },
];

export function Graphs({ series }: { readonly series: ReadonlySignal<Series> }) {
  const [spanMs, setSpan] = useState<number>(SPANS[1][0]);
  const shown = series.value;
  return (
    <Section
      title="Over time"
      actions={
        // biome-ignore lint/a11y/useSemanticElements: buttons of one choice, no fieldset
        <div class="spans" role="group" aria-label="Span">
          {SPANS.map(([ms, title]) => (
            <button key={ms} type="button" aria-pressed={spanMs === ms} onClick={() => setSpan(ms)}>
              {title}
            </button>
          ))}
        </div>
      }
    >
      <div class="graphs">
        {GRAPHS.map(({ name, title, words, least, missing }) => {
          const [times, values] = shown.columns(name, spanMs);
          const last = values.findLast((value) => value !== null) ?? null;
          return (
            <figure key={name} class="graph" data-graph={name}>
              <figcaption>
                {title} <strong>{last === null ? "—" : words(last)}</strong>
              </figcaption>
              {last === null ? (
                <p class="soft">{missing}</p>
              ) : (
                <LiveGraph title={title} times={times} values={values} spanMs={spanMs} least={least} words={words} />
              )}
            </figure>
          );
        })}
      </div>
    </Section>
  );
}
