// What the overview counts: refusals by reason, webhook latency, streams that need attention, upstreams that are down.
import { expect, test } from "vitest";
import { byReason, latencyOf, needAttention, upstreamsOf } from "../../ts/dashboard/overview/sums.ts";
import { LiveRows } from "../../ts/dashboard/streams/live-rows.ts";
import type { LiveRow } from "../../ts/dashboard/streams/records.ts";

function row(client_id: number, change: Partial<LiveRow> = {}): LiveRow {
  const upstreams = { connected: 1, failing: 0 };
  return { client_id, stream: `s${client_id}`, on_air: true, condition: "good", upstreams, ...change } as LiveRow;
}

test("refusals are counted by reason, the most frequent first", () => {
  const refusals = [
    { reason: "locked_stream", count: 2 },
    { reason: "full", count: 4 },
    { reason: "locked_stream", count: 3 },
  ] as const;
  expect(byReason(refusals)).toEqual([
    { reason: "locked_stream", count: 5 },
    { reason: "full", count: 4 },
  ]);
});

test("latency is that of calls with an answer", () => {
  const call = (latency_ms: number, outcome: "answered" | "deadline" = "answered") => ({ latency_ms, outcome });
  expect(latencyOf([call(30), call(5_000, "deadline"), call(10), call(90)])).toEqual({ median: 30, slowest: 90 });
  expect(latencyOf([call(5_000, "deadline")])).toBeNull();
});

test("of streams that need attention the bad ones come first, then the older ones", () => {
  const rows = [row(1), row(2, { condition: "attention" }), row(3, { condition: "bad" }), row(4, { condition: "bad" })];
  expect(needAttention(rows).map(({ client_id }) => client_id)).toEqual([3, 4, 2]);
});

test("upstreams are counted over all streams", () => {
  const failing = row(2, { upstreams: { connected: 0, failing: 2 } });
  expect(upstreamsOf([row(1), failing])).toEqual({ connected: 1, down: 2, rows: [failing] });
});

test("each live stream counts once, with the publish that is on air, and follows changes", () => {
  const rows = new LiveRows();
  const counts = { created: 0, live: 2, ended: 0, locked: 0 };
  const backup = row(3, { stream: "s1", on_air: false });
  rows.replace({ at: 0, counts, sessions: [row(1), row(2), backup] });
  const seen: number[][] = [];
  const end = rows.onAir.subscribe((all) => seen.push(all.map(({ client_id }) => client_id)));
  rows.change({ changed: [{ client_id: 2, condition: "bad" }], gone: [] });
  expect(needAttention(rows.onAir.value).map(({ client_id }) => client_id)).toEqual([2]);
  rows.change({ changed: [], gone: [1, 2] });
  end();
  expect(seen.at(0)).toEqual([1, 2]);
  expect(seen.at(-1)).toEqual([3]);
});
