// A list of thousands of rows of known height, of which only those near the viewport are rendered. It scrolls with the
// page, and a focused row stays rendered when it is scrolled away.
// biome-ignore-all lint/a11y/useSemanticElements: a table of which only some rows are there cannot lay itself out
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows rendered beyond the visible ones, and how far one scrolls before they are replaced. */
const BEYOND = 12;
const STEP = 6;
/** `onEnd` is called this many rows before the last one becomes visible. */
const AHEAD = 60;

interface VirtualListProps {
  readonly count: number;
  /** Where each row begins, pixels, and at `count` where the last one ends. */
  readonly tops: readonly number[];
  readonly row: (index: number) => ComponentChildren;
  /** The end of the list is near. */
  readonly onEnd: () => void;
}

export function VirtualList({ count, tops, row, onEnd }: VirtualListProps) {
  const list = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 30 });
  const [focused, setFocused] = useState<number | null>(null);

  useLayoutEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const box = list.current;
      if (box === null) return;
      const above = -box.getBoundingClientRect().top;
      const step = (pixels: number, round: (value: number) => number) => round(rowAt(tops, pixels) / STEP) * STEP;
      const first = Math.max(0, step(above, Math.floor) - BEYOND);
      const last = Math.min(count - 1, step(above + innerHeight, Math.ceil) + BEYOND);
      setSeen((before) => (before.first === first && before.last === last ? before : { first, last }));
    };
    const later = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, [count, tops]);
  const isNearEnd = seen.last + AHEAD >= count;
  useEffect(() => {
    if (isNearEnd) onEnd();
  }, [isNearEnd, count, onEnd]);

  const indices = [];
  for (let index = seen.first; index <= Math.min(seen.last, count - 1); index += 1) indices.push(index);
  if (focused !== null && focused < count && (focused < seen.first || focused > seen.last)) indices.push(focused);
  const onFocusIn = (event: FocusEvent) => {
    const row = (event.target as Element).closest<HTMLElement>("[aria-rowindex]")?.ariaRowIndex;
    // Row numbers count from 1, and the heading is the first.
    setFocused(row ? Number(row) - 2 : null);
  };
  return (
    <div
      ref={list}
      class="virtual"
      role="rowgroup"
      style={{ height: `${tops[count] ?? 0}px` }}
      onFocusIn={onFocusIn}
      onFocusOut={() => setFocused(null)}
    >
      {indices.map(row)}
    </div>
  );
}

/** The row at this height, by halves; the first or the last one beyond the ends. */
function rowAt(tops: readonly number[], pixels: number): number {
  let [low, high] = [0, Math.max(0, tops.length - 2)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((tops[middle] ?? 0) <= pixels) low = middle;
    else high = middle - 1;
  }
  return low;
}
