// The RTMP matrix in its short form: every publishing program and every condition at least once. The whole of
// it: `npm run matrix -- rtmp`.
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCell } from "../matrix/cell.ts";
import { conditions } from "../matrix/conditions.ts";
import { type House, openHouse } from "../matrix/house.ts";
import { publishers } from "../matrix/publishers.ts";
import { isWholeRun } from "../support/whole-run.ts";

const SECONDS = 4;
const cells: readonly [publisher: string, condition: string][] = [
  ["OBS 29", "accepted"],
  ["OBS 29", "denied"],
  ["ffmpeg 5.1", "denied"],
  ["ffmpeg 5.1", "past 2^24 ms"],
  ["ffmpeg 5.1", "sps change"],
  ["GStreamer rtmp2sink", "arguments"],
  ["GStreamer rtmp2sink", "no audio"],
  ["GStreamer rtmpsink", "no video"],
  ["PyAV, FFmpeg 8, Opus", "b-frames"],
  ["PyAV, FFmpeg 8, Opus", "past 2^31 ms"],
  ["PyAV, FFmpeg 8, HEVC", "slow hook"],
  ["nginx-rtmp push", "accepted"],
  ["nginx-rtmp push", "duplicate"],
];

/** For the run that takes minutes: programs that no other test there publishes with. */
const few = ["GStreamer rtmp2sink: no audio", "PyAV, FFmpeg 8, Opus: b-frames", "nginx-rtmp push: duplicate"];
const run = isWholeRun ? cells : cells.filter((cell) => few.includes(cell.join(": ")));

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(async () => await house?.close());

test("every publisher and every condition has a cell here", () => {
  expect(new Set(cells.map(([publisher]) => publisher))).toEqual(new Set(publishers.map(({ name }) => name)));
  expect(new Set(cells.map(([, condition]) => condition))).toEqual(new Set(conditions.map(({ name }) => name)));
});

// Cells wait most of their time: running them concurrently costs no more.
test.concurrent.for(run)("%s: %s", { timeout: 180_000 }, async ([publisherName, conditionName]) => {
  const publisher = publishers.find(({ name }) => name === publisherName);
  const condition = conditions.find(({ name }) => name === conditionName);
  if (!publisher || !condition) throw new Error("no such cell");
  const { complaints } = await runCell(house, publisher, condition, SECONDS);
  expect(complaints).toEqual([]);
});
