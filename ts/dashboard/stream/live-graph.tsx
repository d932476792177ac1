// One line over time, drawn by uPlot in the colours of the scheme; the newest value is at the right edge.
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import { colourOf, onSchemeChange } from "../parts/colours.ts";
import { roomFor } from "../parts/graph-axis.ts";
import { axisTime } from "../parts/time-words.ts";

const HEIGHT_PX = 110;
/** Between two times of the axis: the longest has seconds, and "PM" behind them. */
const AXIS_SPACE_PX = 66;
/** All graphs of a page share one crosshair. */
const SYNC_KEY = "stream";

interface LiveGraphProps {
  readonly title: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
  readonly spanMs: number;
  /** The axis reaches at least this value. */
  readonly least: number;
  readonly words: (value: number) => string;
}

export function LiveGraph({ title, times, values, spanMs, least, words }: LiveGraphProps) {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const made = make(element, words, least);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    const endSchemes = onSchemeChange(() => made.redraw(false));
    resize.observe(element);
    return () => {
      resize.disconnect();
      endSchemes();
      made.destroy();
    };
  }, [words, least]);
  useEffect(() => {
    const made = plot.current;
    if (made === null) return;
    made.setData([times as number[], values as number[]], false);
    const end = times.at(-1) ?? 0;
    made.setScale("x", { min: end - spanMs / 1_000, max: end });
  }, [times, values, spanMs, words, least]);
  const known = values.filter((value) => value !== null);
  const summary =
    known.length === 0
      ? "no values"
      : `between ${words(Math.min(...known))} and ${words(Math.max(...known))}, now ${words(known.at(-1) ?? 0)}`;
  return <div ref={container} class="plot" role="img" aria-label={`${title} over time: ${summary}`} />;
}

function make(element: HTMLElement, words: (value: number) => string, least: number): UPlot {
  const ink = (property: `--${string}`) => () => colourOf(property);
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: ink("--soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, font };
  return new UPlot(
    {
      width: element.clientWidth,
      height: HEIGHT_PX,
      padding: [8, 4, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: SYNC_KEY }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => rangeOf(low, high, least) } },
      axes: [
        {
          ...axis,
          size: 22,
          space: AXIS_SPACE_PX,
          grid: { show: false },
          values: (_plot, splits, _axis, _space, step) => splits.map((at) => axisTime(at * 1_000, step)),
        },
        { ...axis, size: roomFor(font), values: (_, splits) => splits.map(words), space: 36 },
      ],
      hooks: { setCursor: [readAtPointer(words)] },
      series: [{}, { stroke: ink("--accent"), width: 1.75, points: { show: false }, spanGaps: false }],
    },
    [[], []],
    element,
  );
}

/** Shows time and value at the pointer, on the side of the crosshair where there is room. */
function readAtPointer(words: (value: number) => string): (plot: UPlot) => void {
  const reading = document.createElement("p");
  reading.className = "at-pointer";
  return ({ over, data, cursor: { idx, left = -1 } }) => {
    if (reading.parentElement !== over) over.append(reading);
    const at = idx == null ? undefined : data[0][idx];
    const value = idx == null ? undefined : data[1]?.[idx];
    reading.hidden = left < 0 || at === undefined;
    if (reading.hidden || at === undefined) return;
    reading.textContent = `${axisTime(at * 1_000, 1)} · ${value == null ? "not known" : words(value)}`;
    reading.dataset["side"] = left > over.clientWidth / 2 ? "left" : "right";
    reading.style.left = `${left}px`;
  };
}

/** From 0 unless there are negative values, with space above, so that a line never runs along the edge. */
function rangeOf(low: number | null, high: number | null, least: number): [number, number] {
  const most = Math.max(high ?? 0, least);
  return [low !== null && low < 0 ? low * 1.15 : 0, most * 1.15];
}
