// The history of a stream from two lists, that of its publishes and that of its refusals, each loaded page after page and
// newest first. Pure.
import type { Records } from "../../shell/client.ts";
import type { Pages } from "../../shell/loaded.ts";

export type Publish = Records["Publish"];
export type Refusal = Records["Refusal"];

export type HistoryRow =
  | { readonly kind: "publish"; readonly at: string; readonly publish: Publish }
  | { readonly kind: "refusal"; readonly at: string; readonly refusal: Refusal };

type Lists = readonly [publishes: Pages<Publish>, refusals: Pages<Refusal>];

/** Both as one list. It ends where the first of them is not loaded yet: below that, nobody knows the order. */
export function mergedPages(publishes: Pages<Publish>, refusals: Pages<Refusal>): Omit<Pages<HistoryRow>, "change"> {
  const lists: Lists = [publishes, refusals];
  const ends = [endOf(publishes, ({ asked_at }) => asked_at), endOf(refusals, ({ at }) => at)] as const;
  const end = ends[0] > ends[1] ? ends[0] : ends[1];
  return {
    rows: mergedRows(lists, end),
    error: publishes.error ?? refusals.error,
    isLoading: publishes.isLoading || refusals.isLoading,
    hasMore: publishes.hasMore || refusals.hasMore,
    async more() {
      await Promise.all(lists.filter((list, index) => list.hasMore && ends[index] === end).map((list) => list.more()));
    },
    async reload() {
      await Promise.all(lists.map((list) => list.reload()));
    },
  };
}

/** Later than any time, as text. */
const NEVER = "~";

/** The time to which a list is loaded; "" when it is complete. Times of the API have one length, and compare as text. */
function endOf<Row>({ rows, hasMore }: Pages<Row>, timeOf: (row: Row) => string): string {
  if (!hasMore) return "";
  const last = rows?.at(-1);
  return last === undefined ? NEVER : timeOf(last);
}

function mergedRows([publishes, refusals]: Lists, end: string): readonly HistoryRow[] | null {
  if (publishes.rows === null || refusals.rows === null) return null;
  const published = publishes.rows.map((publish): HistoryRow => ({ kind: "publish", at: publish.asked_at, publish }));
  const refused = refusals.rows
    // A publish that the webhook was asked about is in the other list as well.
    .filter(({ client_id }) => client_id === null)
    .map((refusal): HistoryRow => ({ kind: "refusal", at: refusal.at, refusal }));
  return [...published, ...refused]
    .filter(({ at }) => at >= end)
    .toSorted((one, other) => (one.at === other.at ? 0 : one.at < other.at ? 1 : -1));
}
