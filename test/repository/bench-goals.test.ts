// The table of `npm run bench -- all`: rows made of the blocks that the measurements print.
import { expect, test } from "vitest";
import { goals } from "../../bench/_goals.mjs";

const block = (server: string, cost: number, more: object = {}) => ({
  ...{ server, streams: 100, cpu_ms_per_stream_second: cost, lost: 0, noise: null },
  ...{ video_delay_p50_ms: 1.2, video_delay_p99_ms: 2.9, ...more },
});
const goal = (id: string) => {
  const found = goals(5, []).find((each) => each.id === id);
  if (found === undefined) throw new Error(`no measurement ${id}`);
  return found;
};

test("a row shows the median with its spread, the peer beside it, the ratio and the system calls", () => {
  const found = [
    ...[1.0, 1.2, 1.1].map((cost) => block("headgate", cost)),
    ...[2.0, 2.2, 2.4].map((cost) => block("nginx-rtmp", cost)),
    { server: "headgate", reads: 26, writes: 25 },
  ];
  const [row, relay] = goal("rtmp").rowsOf(found);
  expect(row).toEqual([
    "RTMP → push, N = 100",
    "1.10 ms (1.00–1.20); 26 reads, 25 writes",
    "nginx-rtmp 2.20 ms (2.00–2.40)",
    "**0.50**",
    "0.5",
  ]);
  expect(relay?.[2]).toBe("relay each-40-ms absent");
});

test("a row about AAC shows the codecs alone, which are its floor", () => {
  const found = ["stereo", "mono"].flatMap((sound) => [
    block("headgate", 12, { sound }),
    { server: "codecs alone", streams: 50, sound, cpu_ms_per_stream_second: 8 },
  ]);
  expect(goal("whip-aac").rowsOf(found)[0]).toEqual([
    "WHIP → RTMP, AAC stereo, N = 50",
    "12.00 ms (12.00–12.00)",
    "SRS absent; codecs alone 8.00 ms (8.00–8.00)",
    "**1.50**",
    "6.0; 0.5",
  ]);
});

test("noisy blocks and those with loss are counted, not left out", () => {
  const found = [
    block("headgate", 1),
    block("headgate", 3, { noise: "generator late by 5 ms" }),
    block("headgate", 2, { lost: 7 }),
  ];
  expect(goal("rtmp").rowsOf(found)[0]?.[1]).toBe("2.00 ms (1.00–3.00), 2 of 3 blocks noisy or with loss");
});

test("a measurement that printed nothing still has its rows", () => {
  for (const each of goals(5, []).filter(({ id }) => ["whip", "rtmp", "players", "memory"].includes(id)))
    expect(each.rowsOf([]).length, each.id).toBeGreaterThan(0);
});
