// A graph over time by uPlot, which is loaded with the first graph. Its data is also given in a table or in words
// beside it: for screen readers the graph is one image with a description.
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { colourOf, onSchemeChange } from "./colours.ts";
import { roomFor } from "./graph-axis.ts";

export interface Series {
  readonly title: string;
  readonly colour: `--${string}`;
  /** Of the same length as `times`; null: unknown at that time. */
  readonly values: readonly (number | null)[];
}

interface GraphProps {
  /** One sentence: "Bytes by day from 1 to 30 May". */
  readonly label: string;
  /** Epoch ms, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** Formats a value for people. */
  readonly words: (value: number) => string;
  /** Columns for totals of a span of time, lines for measurements. */
  readonly kind: "columns" | "lines";
  /** px. */
  readonly height?: number;
  /** The axis starts at 0 and reaches at least this value. */
  readonly least?: number;
  /** Days in UTC, for daily totals; otherwise the browser's time zone. */
  readonly inUtc?: boolean;
}

/** Share of the space between two times that the columns of one time fill, side by side; and the maximum width of a
 *  column, px. */
const COLUMNS_WIDTH = 0.75;
const COLUMN_LIMIT_PX = 24;

export function Graph(props: GraphProps) {
  const { label, times, series, height = 180 } = props;
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(props);
  newest.current = props;
  const [hasFailed, setFailed] = useState(false);
  /** A change of these needs a new plot; new data is passed to the existing one. */
  const shape = [props.kind, height, ...series.map(({ title, colour }) => title + colour)].join();

  useEffect(() => {
    let isGone = false;
    const ends: (() => void)[] = [];
    const open = async () => {
      const { default: Plot } = await import("uplot");
      const element = container.current;
      if (isGone || element === null) return;
      const draw = () => {
        plot.current?.destroy();
        plot.current = new Plot(optionsOf(newest.current, Plot, element.clientWidth), dataOf(newest.current), element);
      };
      draw();
      const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
      sizes.observe(element);
      ends.push(
        () => sizes.disconnect(),
        onSchemeChange(draw),
        () => plot.current?.destroy(),
      );
    };
    open().catch(() => setFailed(true));
    return () => {
      isGone = true;
      for (const end of ends) end();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(dataOf(newest.current)), [times, series]);

  if (hasFailed) return <p class="soft">The graph could not be loaded. Reload the page to see it.</p>;
  return (
    <figure class="graph">
      <figcaption class="legend">
        {series.map(({ title, colour }) => (
          <span key={title}>
            <i style={{ background: `var(${colour})` }} /> {title}
          </span>
        ))}
      </figcaption>
      <div ref={container} role="img" aria-label={label} style={{ minHeight: `${height}px` }} />
    </figure>
  );
}

function dataOf({ times, series }: GraphProps): uPlot.AlignedData {
  return [times.map((time) => time / 1_000), ...series.map(({ values }) => [...values])];
}

function optionsOf(props: GraphProps, Plot: typeof uPlot, width: number): uPlot.Options {
  const { series, words, kind, height = 180, least = 0, inUtc = false } = props;
  const [soft, line] = [colourOf("--soft"), colourOf("--line")];
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const columns = (index: number) =>
    Plot.paths.bars?.({
      size: [COLUMNS_WIDTH / series.length, COLUMN_LIMIT_PX],
      // Two columns are placed to either side of their time; a single or middle one is centred on it.
      align: series.length === 1 ? 0 : index === 0 ? -1 : 1,
    });
  return {
    width,
    height,
    padding: [8, 4, 0, 0],
    legend: { show: true, live: true },
    cursor: { drag: { x: false, y: false }, points: { show: kind === "lines" } },
    ...(inUtc ? { tzDate: (seconds: number) => Plot.tzDate(new Date(seconds * 1_000), "Etc/UTC") } : {}),
    scales: {
      x: { time: true, ...(kind === "columns" ? { range: withRoom } : {}) },
      y: { range: (_plot, _low, high) => [0, Math.max(least, high ?? 0, Number.MIN_VALUE) * 1.08 || 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 70 },
      { ...axis, size: roomFor(font), values: (_plot, splits) => splits.map((value) => words(value)) },
    ],
    series: [
      { value: inUtc ? "{YYYY}-{MM}-{DD}" : "{HH}:{mm}:{ss}" },
      ...series.map(({ title, colour }, index) => ({
        label: title,
        stroke: colourOf(colour),
        ...(kind === "columns" ? columnsOf(colour, columns(index)) : { width: 2 }),
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : words(value)),
      })),
    ],
  };
}

function columnsOf(colour: Series["colour"], paths: uPlot.Series.PathBuilder | undefined) {
  return { fill: colourOf(colour), width: 0, ...(paths === undefined ? {} : { paths }) };
}

/** Half a step more at either end, so that the first and the last columns are fully visible. */
function withRoom(plot: uPlot, first: number, last: number): uPlot.Range.MinMax {
  const times = plot.data[0];
  const step = times.length > 1 ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 : 43_200;
  return [first - step, last + step];
}
