// Numbers of running publishes: rates between readings, and an hour of history in bounded memory.
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { PublishSnapshot } from "../../ts/media.ts";
import { createMeasurements, type Measurements } from "../../ts/publish/monitoring/measurements.ts";
import { NumberHistory, POINTS_LIMIT, STEP_MS } from "../../ts/publish/monitoring/number-history.ts";
import { numbersOf, UNKNOWN } from "../../ts/publish/monitoring/numbers.ts";
import { RecordingMedia } from "../support/recording-media.ts";

const VIDEO = { codec: "H264", width: 1_280, height: 720 };

function snapshot(counters: Partial<PublishSnapshot>): PublishSnapshot {
  const media = new RecordingMedia();
  media.measure(1, { tracks: { video: VIDEO, audio: null }, ...counters });
  return media.snapshot(1) as PublishSnapshot;
}

describe("numbers", () => {
  test("are rates since the previous reading", () => {
    const now = snapshot({
      bytesIn: 350_000,
      videoFrames: 75,
      gopMs: 1_999.6,
      rttMs: 12.4,
      lossPercent: 0.26,
      skewMs: -3.6,
    });
    const numbers = numbersOf(now, 3_000, { at: 1_000, bytesIn: 100_000, videoFrames: 15 });
    const rest = { gopMs: 2_000, rttMs: 12, lossPercent: 0.3, skewMs: -4 };
    expect(numbers).toEqual({ bitrateKbps: 1_000, fps: 30, ...rest });
  });

  test("are unknown before a second reading, after the clock was set back, and where the core does not know them", () => {
    expect(numbersOf(snapshot({ bytesIn: 5 }), 1_000, null)).toEqual(UNKNOWN);
    expect(numbersOf(snapshot({ bytesIn: 5 }), 1_000, { at: 2_000, bytesIn: 0, videoFrames: 0 })).toEqual(UNKNOWN);
    const audio = snapshot({ tracks: { video: null, audio: null } });
    expect(numbersOf(audio, 1_000, { at: 0, bytesIn: 0, videoFrames: 0 })).toEqual({ ...UNKNOWN, bitrateKbps: 0 });
  });
});

describe("a history", () => {
  const rate = (bitrateKbps: number) => ({ ...UNKNOWN, bitrateKbps });

  test("keeps an hour, and drops the oldest point", () => {
    const history = new NumberHistory();
    for (let point = 0; point < POINTS_LIMIT + 10; point += 1) history.add(1_000 + point * STEP_MS, rate(point));
    const { since, points } = history.read();
    expect(since).toBe(1_000 + 10 * STEP_MS);
    expect(points.bitrateKbps).toEqual(Array.from({ length: POINTS_LIMIT }, (_, index) => index + 10));
    expect(new Set(points.fps)).toEqual(new Set([null]));
  });

  test("has null where a point was missed, and the last one of two for the same moment", () => {
    const history = new NumberHistory();
    history.add(0, rate(1));
    history.add(3 * STEP_MS + 40, rate(4));
    history.add(3 * STEP_MS + 90, rate(5));
    expect(history.read().points.bitrateKbps).toEqual([1, null, null, 5]);
    for (let point = 4; point < 2_000; point += 3) history.add(point * STEP_MS, rate(point));
    const { since, points } = history.read();
    expect([since, points.bitrateKbps.length, points.bitrateKbps.at(-1)]).toEqual([1_280 * STEP_MS, 720, 1_999]);
  });

  test("starts again when the clock was set", () => {
    for (const at of [-STEP_MS * 5, STEP_MS * 10_000]) {
      const history = new NumberHistory();
      for (const point of [0, STEP_MS]) history.add(point, rate(1));
      history.add(at, rate(7));
      expect(history.read()).toMatchObject({ since: at, points: { bitrateKbps: [7] } });
    }
  });
});

describe("the measurements of running publishes", () => {
  const clock = { ms: 100_000, now: () => clock.ms };
  const log = pino({ level: "silent" });
  let media: RecordingMedia;
  let running: number[];
  let measurements: Measurements;

  function publishingOf() {
    const publishes = () =>
      running.map((clientId) => ({
        ...{ clientId, intent: { organisationId: "o", streamId: `s${clientId}` } },
        ...{ protocol: "rtmp", acceptedAt: 0, addedUpstreams: new Map(), upstreamLabels: new Map() },
      }));
    return {
      running: publishes as never,
      find: ((id: number) => publishes().find(({ clientId }) => clientId === id)) as never,
      ofStream: ((organisationId: string, streamId: string) =>
        publishes().find(
          ({ intent }) => intent.organisationId === organisationId && intent.streamId === streamId,
        )) as never,
    };
  }

  beforeEach(() => {
    media = new RecordingMedia();
    running = [1, 2];
    measurements = createMeasurements({
      publishing: publishingOf(),
      media: () => media,
      clock,
      log,
      events: { emit: () => {} },
    });
  });
  afterEach(() => measurements.stop());

  test("have a history from the first point on, which is removed with the publish", () => {
    media.measure(1, { bytesIn: 0 });
    for (let point = 0; point < 3; point += 1) {
      measurements.addPoints();
      clock.ms += STEP_MS;
      media.measure(1, { bytesIn: (point + 1) * 625_000 });
    }
    expect(measurements.historyOf(1).points.bitrateKbps).toEqual([null, 1_000, 1_000]);
    expect(measurements.historyOf(2)).toMatchObject({ since: null, points: { fps: [] } });
    running = [2];
    measurements.addPoints();
    expect(measurements.historyOf(1).since).toBeNull();
  });

  test("have a rate at the first poll, from the last point, and one reading for polls at the same moment", () => {
    media.measure(1, { bytesIn: 0 });
    measurements.addPoints();
    clock.ms += 2_000;
    media.measure(1, { bytesIn: 250_000 });
    expect(measurements.numbersOf(1).bitrateKbps).toBe(1_000);
    clock.ms += 100;
    media.measure(1, { bytesIn: 9_000_000 });
    expect(measurements.ofStream("o", "s1")?.numbers.bitrateKbps).toBe(1_000);
    expect(measurements.ofStream("another", "s1")).toBeNull();
    expect(measurements.ofOrganisation("o").map(({ snapshot }) => snapshot?.bytesIn)).toEqual([250_000, undefined]);
    expect(measurements.numbersOf(3)).toEqual(UNKNOWN);
  });

  test.each([1, 40, 499])("have no rate over %i ms: neither a point nor a poll right after a point", (afterMs) => {
    media.measure(1, { bytesIn: 0 });
    measurements.addPoints();
    clock.ms += STEP_MS;
    media.measure(1, { bytesIn: 625_000 });
    measurements.addPoints();
    clock.ms += afterMs;
    expect(measurements.numbersOf(1).bitrateKbps).toBe(1_000);
    measurements.addPoints();
    expect(measurements.historyOf(1).points.bitrateKbps).toEqual([null, 1_000]);
    clock.ms += STEP_MS - afterMs;
    media.measure(1, { bytesIn: 1_250_000 });
    measurements.addPoints();
    expect(measurements.historyOf(1).points.bitrateKbps).toEqual([null, 1_000, 1_000]);
  });

  test("have one point for each step although timers fire a millisecond early", async () => {
    vi.useFakeTimers();
    try {
      const startedAt = Date.now() - (Date.now() % STEP_MS);
      vi.setSystemTime(startedAt);
      // Of 5,000 ms of a timer, this clock sees 4,999.
      clock.now = () => startedAt + Math.floor((Date.now() - startedAt) * 0.9999);
      media.measure(1, { tracks: { video: VIDEO, audio: null } });
      const frames = () => media.measure(1, { videoFrames: Math.round((clock.now() - startedAt) / 40) });
      measurements.stop();
      const counting = setInterval(frames, 10);
      measurements = createMeasurements({
        publishing: publishingOf(),
        media: () => media,
        clock,
        log,
        events: { emit: () => {} },
      });
      await vi.advanceTimersByTimeAsync(60 * STEP_MS);
      clearInterval(counting);
      const { fps } = measurements.historyOf(1).points;
      expect(fps.length).toBeGreaterThanOrEqual(59);
      for (const rate of fps.slice(1)) expect(Math.abs((rate ?? 0) - 25)).toBeLessThanOrEqual(0.5);
    } finally {
      clock.now = () => clock.ms;
      vi.useRealTimers();
    }
  });
});
