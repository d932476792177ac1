// The axis of values beside a graph: as wide as its longest label, so that none is cut.
import type uPlot from "uplot";

/** Between the labels and the graph, pixels; uPlot leaves as much. */
const GAP_PX = 12;
const LEAST_PX = 40;

/** For `size` of an axis whose labels have this font. */
export function roomFor(font: string): (plot: uPlot, labels: readonly string[] | null) => number {
  return ({ ctx }, labels) => {
    if (labels === null) return LEAST_PX; // no values yet
    ctx.save();
    ctx.font = font;
    const widths = labels.map((label) => ctx.measureText(label).width);
    ctx.restore();
    return Math.max(LEAST_PX, Math.ceil(Math.max(...widths)) + GAP_PX);
  };
}
