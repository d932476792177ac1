// One line over time, drawn by uPlot in the colours of the scheme; the newest value is at the right edge.
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import { theme } from "../shell/theme.ts";

const HEIGHT_PX = 110;
/** All graphs of a page show the same moment under the pointer. */
const SYNC_KEY = "stream";
const DARK = matchMedia("(prefers-color-scheme: dark)");

interface LiveGraphProps {
  readonly title: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
  readonly spanMs: number;
  readonly words: (value: number) => string;
}

export function LiveGraph({ title, times, values, spanMs, words }: LiveGraphProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const scheme = theme.value;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = make(element, words);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    const repaint = () => made.redraw(false);
    resize.observe(element);
    DARK.addEventListener("change", repaint);
    return () => {
      resize.disconnect();
      DARK.removeEventListener("change", repaint);
      made.destroy();
    };
  }, [words, scheme]);
  useEffect(() => {
    const made = plot.current;
    if (made === null) return;
    made.setData([times as number[], values as number[]], false);
    const end = times.at(-1) ?? 0;
    made.setScale("x", { min: end - spanMs / 1_000, max: end });
  }, [times, values, spanMs, words, scheme]);
  const known = values.filter((value) => value !== null);
  const summary =
    known.length === 0
      ? "no values"
      : `between ${words(Math.min(...known))} and ${words(Math.max(...known))}, now ${words(known.at(-1) ?? 0)}`;
  return <div ref={place} class="plot" role="img" aria-label={`${title} over time: ${summary}`} />;
}

function make(element: HTMLElement, words: (value: number) => string): UPlot {
  const colour = (name: string) => () => getComputedStyle(element).getPropertyValue(name);
  const ink = (role: string) => () => {
    const probe = element.ownerDocument.createElement("span");
    probe.style.color = `var(${role})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const font = `11px ${colour("--pico-font-family-sans-serif")()}`;
  const axis = { stroke: ink("--soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, font };
  return new UPlot(
    {
      width: element.clientWidth,
      height: HEIGHT_PX,
      padding: [8, 4, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: SYNC_KEY }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => rangeOf(low, high) } },
      axes: [
        { ...axis, size: 22, grid: { show: false } },
        { ...axis, size: 58, values: (_, splits) => splits.map(words), space: 36 },
      ],
      series: [{}, { stroke: ink("--accent"), width: 1.75, points: { show: false }, spanGaps: false }],
    },
    [[], []],
    element,
  );
}

/** From 0 where nothing is below it, with air above; never a line on the edge. */
function rangeOf(low: number | null, high: number | null): [number, number] {
  const most = Math.max(high ?? 0, 0);
  const least = Math.min(low ?? 0, 0);
  const span = most - least;
  return span === 0 ? [0, 1] : [least < 0 ? least - span * 0.1 : 0, most + span * 0.15];
}
