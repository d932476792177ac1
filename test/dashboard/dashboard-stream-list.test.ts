// How the list of streams is maintained: each stream once, live ones first, and kept current by the event
// stream.
import { expect, test } from "vitest";
import { heightOf, topsOf } from "../../ts/dashboard/lists/card-heights.ts";
import { FOLLOWED_LIMIT } from "../../ts/dashboard/shell/loaded.ts";
import { LiveRows } from "../../ts/dashboard/streams/live-rows.ts";
import type { LiveRow, Stream, StreamState } from "../../ts/dashboard/streams/records.ts";
import { matches, type StreamFilter, StreamList, type StreamSource } from "../../ts/dashboard/streams/stream-list.ts";

const ALL: StreamFilter = { state: null, tags: [], search: "" };

function stream(id: string, state: StreamState = "created", tags: string[] = []): Stream {
  const created_at = `2026-01-01T00:00:${id.padStart(2, "0")}.000Z`;
  return { id, state, tags, created_at, ingest: { rtmp: { streamname: `Ab1Cd-${id}` } } } as unknown as Stream;
}

function row(client_id: number, of: string, bitrate_kbps = 1_000): LiveRow {
  return { client_id, stream: of, bitrate_kbps, on_air: true, condition: "good" } as LiveRow;
}

/** A service with these streams, in pages of two; it records the requests. */
function serviceOf(streams: Stream[]) {
  const asked: string[] = [];
  const source: StreamSource = {
    async page(_, cursor) {
      asked.push(`page ${cursor}`);
      const from = Number(cursor ?? 0);
      return { streams: streams.slice(from, from + 2), next: from + 2 < streams.length ? String(from + 2) : null };
    },
    async one(id) {
      asked.push(id);
      return streams.find((of) => of.id === id) ?? null;
    },
  };
  return { source, asked };
}
const ids = (list: StreamList) => list.rows.value?.map(({ id }) => id);

test("pages are merged, live ones first and then the newest", async () => {
  const { source, asked } = serviceOf([stream("1", "live"), stream("9"), stream("8"), stream("9")]);
  const list = new StreamList(source, ALL);
  await list.more();
  await Promise.all([list.more(), list.more()]);
  await list.more();
  expect(asked).toEqual(["page null", "page 2"]);
  expect(ids(list)).toEqual(["1", "9", "8"]);
  expect(list.hasMore.value).toBe(false);
});

test("a stream that goes live moves to the top, also one that has not been loaded yet", async () => {
  const { source, asked } = serviceOf([stream("9"), stream("8"), stream("7", "live"), stream("6")]);
  const list = new StreamList(source, ALL);
  await list.more();
  await list.statesChanged([
    { id: "8", state: "live" },
    { id: "7", state: "live" },
  ]);
  expect(ids(list)).toEqual(["8", "7", "9"]);
  await list.statesChanged([
    { id: "8", state: "ended" },
    { id: "9", state: "deleted" },
  ]);
  expect(ids(list)).toEqual(["7", "8"]);
  expect(asked).toEqual(["page null", "7"]);
});

test("streams that no longer match the filter are removed, and those that now match are added", async () => {
  const { source } = serviceOf([stream("9", "live"), stream("8", "live")]);
  const list = new StreamList(source, { ...ALL, state: "live" });
  await list.more();
  await list.statesChanged([{ id: "9", state: "ended" }]);
  expect(ids(list)).toEqual(["8"]);
  list.put(stream("3", "live"));
  list.put(stream("2", "locked"));
  expect(ids(list)).toEqual(["8", "3"]);
});

test("after a time without events doubtful streams are requested again, and many of them as a whole list", async () => {
  const { source, asked } = serviceOf([stream("9"), stream("8")]);
  const list = new StreamList(source, ALL);
  await list.more();
  list.put(stream("7", "live"));
  await list.reconcile(new Set(["9"]));
  expect(asked.splice(0)).toEqual(["page null", "9", "7"]);
  expect(ids(list)).toEqual(["9", "8"]);
  await list.reconcile(new Set(Array.from({ length: 30 }, (_, index) => `new-${index}`)));
  expect(asked).toEqual(["page null"]);
});

test("live streams of a loaded page are not requested one by one", async () => {
  const { source, asked } = serviceOf([stream("9", "live"), stream("8", "live"), stream("7", "live")]);
  const list = new StreamList(source, ALL);
  await list.more();
  await list.reconcile(new Set(["9", "8", "7"]));
  expect(asked).toEqual(["page null"]);
});

test("a page that cannot be loaded is reported, and requested again", async () => {
  const { source } = serviceOf([stream("9")]);
  let fails = true;
  const page: StreamSource["page"] = (...given) => (fails ? Promise.reject(new Error("gone")) : source.page(...given));
  const list = new StreamList({ ...source, page }, ALL);
  await list.more();
  expect([list.rows.value, list.error.value]).toEqual([null, new Error("gone")]);
  fails = false;
  await list.more();
  expect([ids(list), list.error.value]).toEqual([["9"], null]);
});

test("empty pages that have a next one are followed by themselves a few times, and further on request", async () => {
  const asked: (string | null)[] = [];
  const last = 2 * FOLLOWED_LIMIT;
  const source: StreamSource = {
    async page(_, cursor) {
      asked.push(cursor);
      const at = Number(cursor ?? 0);
      return at < last ? { streams: [], next: String(at + 1) } : { streams: [stream("9")], next: null };
    },
    one: async () => null,
  };
  const list = new StreamList(source, { ...ALL, search: "seldom" });
  await list.more();
  expect([ids(list), list.hasMore.value, list.isLoading.value]).toEqual([[], true, false]);
  expect(asked).toEqual([null, ...Array.from({ length: FOLLOWED_LIMIT }, (_, at) => String(at + 1))]);
  await list.more();
  expect([ids(list), list.hasMore.value]).toEqual([["9"], false]);
  expect(asked).toHaveLength(last + 1);
});

test("an empty last page, and a short one with a next one, are not followed", async () => {
  const pages = [
    { streams: [stream("9")], next: "1" },
    { streams: [], next: null },
  ];
  let asked = 0;
  const list = new StreamList({ page: async () => pages[asked++] as never, one: async () => null }, ALL);
  await list.more();
  expect([asked, list.hasMore.value]).toEqual([1, true]);
  await list.more();
  expect([asked, ids(list), list.hasMore.value]).toEqual([2, ["9"], false]);
});

test("a filter has the same meaning as in the service", () => {
  const tagged = stream("1", "live", ["Studio-1", "main"]);
  expect(matches(tagged, { ...ALL, search: "studio" })).toBe(true);
  expect(matches(tagged, { ...ALL, search: "AB1CD" })).toBe(true);
  expect(matches({ ...tagged, title: "Sunday service" }, { ...ALL, search: "sunday" })).toBe(true);
  expect(matches({ ...tagged, external_id: "order-7" }, { ...ALL, search: "order-7" })).toBe(true);
  expect(matches(tagged, { ...ALL, tags: ["main", "Studio-1"] })).toBe(true);
  expect(matches(tagged, { ...ALL, tags: ["studio-1"] })).toBe(false);
  expect(matches(tagged, { ...ALL, state: "ended" })).toBe(false);
});

test("on a phone a card is as high as what it shows, and in the table all rows are equal", () => {
  const plain = { ...stream("1"), title: null };
  const full = { ...stream("2", "live", ["main"]), title: "Sunday service" };
  expect(topsOf([plain, full, plain], false)).toEqual([0, 53, 106, 159]);
  const [first = 0, second = 0, third = 0, end = 0] = topsOf([plain, full, plain], true);
  expect([first, second, end - third]).toEqual([0, heightOf(plain, true) + 8, heightOf(plain, true) + 8]);
  expect(heightOf(full, true)).toBeGreaterThan(heightOf(plain, true));
});

test("numbers reach only their own row, and of two publishes the newest is shown", () => {
  const rows = new LiveRows();
  const counts = { created: 0, live: 2, ended: 0, locked: 0 };
  rows.replace({ at: 0, counts, sessions: [row(1, "a"), row(2, "b")] });
  const seen: (number | null | undefined)[] = [];
  const end = rows.of("b").subscribe((value) => seen.push(value?.bitrate_kbps));
  rows.change({ changed: [{ client_id: 1, bitrate_kbps: 5 }], gone: [] });
  rows.change({ changed: [{ client_id: 2, bitrate_kbps: 6 }], gone: [] });
  rows.change({ changed: [row(3, "b", 7), { client_id: 99, bitrate_kbps: 8 }], gone: [] });
  rows.change({ changed: [{ client_id: 2, bitrate_kbps: 9 }], gone: [2] });
  rows.change({ changed: [], gone: [3, 4] });
  end();
  expect(seen).toEqual([1_000, 6, 7, undefined]);
  expect([rows.of("a").value?.bitrate_kbps, rows.of("a").value?.condition]).toEqual([5, "good"]);
  expect([...rows.streams()]).toEqual(["a"]);
});

test("of a publish and its backup the one on air is shown", () => {
  const rows = new LiveRows();
  const counts = { created: 0, live: 1, ended: 0, locked: 0 };
  rows.replace({ at: 0, counts, sessions: [row(1, "a"), { ...row(2, "a"), on_air: false }] });
  const shown = () => rows.of("a").value?.client_id;
  expect(shown()).toBe(1);
  rows.change({
    changed: [
      { client_id: 1, on_air: false },
      { client_id: 2, on_air: true },
    ],
    gone: [],
  });
  expect(shown()).toBe(2);
  rows.change({ changed: [], gone: [2] });
  expect(shown()).toBe(1);
});
