// Heights of the rows of the list of streams: equal in the table; on a phone each is a card that is as high as what it shows.
// They are known before a row is rendered, so that thousands of rows need no measuring.

/** What of a stream decides. */
interface Shown {
  readonly state: string;
  readonly title: string | null;
  readonly tags: readonly string[];
}

/** Pixels; the lines of text are those of style/d-streams.css, whose cards have the gap below them too. */
const ROW_PX = 53;
const CARD = { gap: 8, idle: 104, live: 128, title: 18, tags: 26 } as const;

export function heightOf({ state, title, tags }: Shown, isPhone: boolean): number {
  if (!isPhone) return ROW_PX;
  const tagsPx = tags.length > 0 ? CARD.tags : 0;
  return (state === "live" ? CARD.live : CARD.idle) + (title === null ? 0 : CARD.title) + tagsPx;
}

/** Where each row begins, and at the end where the last one ends. */
export function topsOf(rows: readonly Shown[], isPhone: boolean): readonly number[] {
  const tops = [0];
  for (const row of rows) tops.push((tops.at(-1) ?? 0) + heightOf(row, isPhone) + (isPhone ? CARD.gap : 0));
  return tops;
}
