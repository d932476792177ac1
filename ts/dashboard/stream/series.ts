// Measurements of a publish over the last hour, in bounded memory: a point each second for the last minutes, one every
// five seconds before that. Pure.
import type { Numbers } from "../streams/records.ts";

export const NAMES = ["bitrate_kbps", "fps", "gop_ms", "loss_percent", "rtt_ms", "skew_ms"] as const;
export type NumberName = (typeof NAMES)[number];

/** The total span, and how long points of each second are kept, ms. */
const SPAN_MS = 3_600_000;
const FINE_MS = 300_000;

/** The response of `GET /session/{client_id}/history`. */
export interface History {
  readonly step_ms: number;
  /** Epoch ms of the first point; null when there is none. */
  readonly since: number | null;
  readonly points: Readonly<Record<NumberName, readonly (number | null)[]>>;
}

interface Point {
  /** Epoch ms, on the clock of the service. */
  readonly at: number;
  readonly numbers: Numbers;
}

/** Immutable, so that components notice each change. */
export class Series {
  readonly #points: readonly Point[];

  constructor(points: readonly Point[] = []) {
    this.#points = points;
  }

  static of({ step_ms, since, points }: History): Series {
    if (since === null) return new Series();
    const count = points.bitrate_kbps.length;
    const numbersAt = (index: number) =>
      Object.fromEntries(NAMES.map((name) => [name, points[name][index] ?? null])) as Partial<Numbers> as Numbers;
    return new Series(
      Array.from({ length: count }, (_, index) => ({ at: since + index * step_ms, numbers: numbersAt(index) })),
    );
  }

  /** Adds a point; one that is not newer than the last is ignored. */
  with(at: number, numbers: Numbers, stepMs = 5_000): Series {
    const last = this.#points.at(-1);
    if (last !== undefined && at <= last.at) return this;
    let before = 0;
    const kept = this.#points.filter((point, index) => {
      if (point.at < at - SPAN_MS) return false;
      if (point.at >= at - FINE_MS || index === 0) return true;
      const isNew = Math.floor(point.at / stepMs) !== before;
      before = Math.floor(point.at / stepMs);
      return isNew;
    });
    return new Series([...kept, { at, numbers }]);
  }

  /** Prepends the points of `history`. */
  after(history: Series): Series {
    const first = this.#points[0]?.at ?? Number.POSITIVE_INFINITY;
    return new Series([...history.#points.filter(({ at }) => at < first), ...this.#points]);
  }

  get length(): number {
    return this.#points.length;
  }

  /** Times in Unix seconds and values, of the last `spanMs`; null is a gap. */
  columns(name: NumberName, spanMs: number): [times: number[], values: (number | null)[]] {
    const shown = this.#since(spanMs);
    return [shown.map(({ at }) => at / 1_000), shown.map(({ numbers }) => numbers[name])];
  }

  /** The known values of the last `spanMs`. */
  recent(name: NumberName, spanMs: number): readonly number[] {
    return this.#since(spanMs)
      .map(({ numbers }) => numbers[name])
      .filter((value) => value !== null);
  }

  #since(spanMs: number): readonly Point[] {
    const from = (this.#points.at(-1)?.at ?? 0) - spanMs;
    return this.#points.filter(({ at }) => at >= from);
  }
}
