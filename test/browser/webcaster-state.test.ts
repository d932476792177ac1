// The pure decisions of the browser client: states, when it retries, when the service counts as silent.
import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pause as interruptible } from "../../ts/webcaster/pause.ts";
import { ERRORS, WebcasterError } from "../../ts/webcaster/pure/errors.ts";
import { Heartbeat, IDLE_LIMIT_MS, SILENCE_LIMIT_MS } from "../../ts/webcaster/pure/heartbeat.ts";
import { HelperUtils } from "../../ts/webcaster/pure/helper-utils.ts";
import { delayBefore, RECONNECT_DEFAULT } from "../../ts/webcaster/pure/reconnect.ts";
import { isBroadcasting, next, resumes, type StateEvent, type WebcasterState } from "../../ts/webcaster/pure/state.ts";

describe("states", () => {
  /** The state after a sequence of events; null as soon as one is not allowed. */
  const walk = (...events: StateEvent[]) =>
    events.reduce<WebcasterState | null>((state, event) => (state === null ? null : next(state, event)), "idle");

  test.each<[story: string, events: StateEvent[], ends: WebcasterState | null]>([
    ["a broadcast and its end", ["setup", "media_opened", "start", "connected", "stop", "stopped"], "ready"],
    ["no camera", ["setup", "media_refused"], "idle"],
    ["a refusal, and another try", ["setup", "media_opened", "start", "gave_up", "start", "connected"], "live"],
    ["a short interruption", ["setup", "media_opened", "start", "connected", "interrupted", "connected"], "live"],
    ["a loss", ["setup", "media_opened", "start", "connected", "interrupted", "lost", "connected"], "live"],
    ["an end by the service", ["setup", "media_opened", "start", "connected", "lost", "gave_up"], "failed"],
    ["a start without media", ["start"], null],
    ["a start while it prepares", ["setup", "start"], null],
    ["a second start", ["setup", "media_opened", "start", "start"], null],
    ["a stop while nothing runs", ["setup", "media_opened", "stop"], null],
    ["a stop while it reconnects", ["setup", "media_opened", "start", "connected", "lost", "stop", "stopped"], "ready"],
  ])("%s", (_, events, ends) => expect(walk(...events)).toBe(ends));

  const states: readonly WebcasterState[] = [
    "idle",
    "preparing",
    "ready",
    "connecting",
    "live",
    "recovering",
    "reconnecting",
    "stopping",
    "failed",
  ];
  test.each(states)("disposal is possible in state %s", (state) => expect(next(state, "dispose")).toBe("idle"));

  test("recover() starts again what ran or had failed, but not what is being stopped", () => {
    expect(states.filter(resumes)).toEqual(["connecting", "live", "recovering", "reconnecting", "failed"]);
  });

  test.each(states)("%s can be stopped if and only if it broadcasts and is not being stopped", (state) => {
    expect(next(state, "stop") !== null).toBe(isBroadcasting(state) && state !== "stopping");
  });
});

describe("retrying", () => {
  test("begins after 2 s, grows to 15 s and ends after 10 tries", () => {
    const delays = Array.from({ length: 11 }, (_, at) => delayBefore(at + 1, RECONNECT_DEFAULT, null, 0));
    expect(delays.slice(0, 5)).toEqual([2, 3, 4.5, 6.75, 10.125]);
    expect(delays.slice(5)).toEqual([15, 15, 15, 15, 15, null]);
  });

  test("waits as long as the service asks", () => {
    expect(delayBefore(1, RECONNECT_DEFAULT, 5, 0)).toBe(5);
    expect(delayBefore(1, RECONNECT_DEFAULT, 1, 0)).toBe(2);
  });

  test("comes at another moment in each browser, also after a Retry-After", () => {
    const delays = (retryAfterSec: number | null) =>
      [0, 0.5, 1].map(
        (random) => Math.round(10 * (delayBefore(1, RECONNECT_DEFAULT, retryAfterSec, random) ?? 0)) / 10,
      );
    expect([delays(null), delays(5)]).toEqual([
      [2, 2.2, 2.4],
      [5, 5.5, 6],
    ]);
  });

  test("never waits less than the minimum or more than the maximum, whatever is configured", () => {
    const seconds = fc.double({ min: 1, max: 3_600, noNaN: true });
    const attempts = fc.integer({ min: 1, max: 100 });
    const random = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(seconds, seconds, attempts, random, (minDelaySec, maxDelaySec, attempt, chance) => {
        const delay = delayBefore(attempt, { minDelaySec, maxDelaySec, maxRetries: 100 }, null, chance);
        expect(delay).toBeGreaterThanOrEqual(minDelaySec);
        expect(delay).toBeLessThanOrEqual(Math.max(minDelaySec, maxDelaySec));
      }),
    );
  });
});

test("a pause that is over is no listener any more, however it ended", async () => {
  const [over, awake] = [new AbortController(), new AbortController()];
  await interruptible(0, over.signal, awake.signal);
  const paused = interruptible(60_000, over.signal, awake.signal);
  awake.abort();
  await paused;
  expect([over, awake].map(({ signal }) => getEventListeners(signal, "abort").length)).toEqual([0, 0]);
});

describe("the service's silence", () => {
  test("is measured from the last received data", () => {
    const heartbeat = new Heartbeat();
    expect(heartbeat.isSilent(1_000_000, true)).toBe(false);
    expect(heartbeat.add(100, 0)).toBe(true);
    expect(heartbeat.add(200, 1_000)).toBe(true);
    expect(heartbeat.add(200, 2_000)).toBe(false);
    expect(heartbeat.isSilent(1_000 + SILENCE_LIMIT_MS, true)).toBe(false);
    expect(heartbeat.isSilent(1_001 + SILENCE_LIMIT_MS, true)).toBe(true);
    // Nothing is sent that would be answered.
    expect(heartbeat.isSilent(1_000 + IDLE_LIMIT_MS, false)).toBe(false);
    expect(heartbeat.isSilent(1_001 + IDLE_LIMIT_MS, false)).toBe(true);
  });

  test("ends with a smaller count as well: another network path counts from 0", () => {
    const heartbeat = new Heartbeat();
    heartbeat.add(5_000, 0);
    expect(heartbeat.add(0, 10_000)).toBe(false);
    expect(heartbeat.add(40, 10_500)).toBe(true);
    expect(heartbeat.isSilent(11_000, true)).toBe(false);
  });

  test("is zero after a sleep in which something was received", () => {
    const heartbeat = new Heartbeat();
    heartbeat.add(100, 0);
    heartbeat.add(160, 3_600_000);
    expect(heartbeat.isSilent(3_600_000, true)).toBe(false);
  });
});

describe("errors", () => {
  test("have unique numbers, in the group of their first digit", () => {
    const codes = Object.values(ERRORS).map(([code]) => code);
    expect(new Set(codes).size).toBe(codes.length);
    expect(codes).toEqual([...codes].sort());
    for (const code of codes) expect([1, 2, 3, 4, 5]).toContain(Math.floor(code / 1_000));
  });

  test("contain the known reason, and whether retrying may help", () => {
    const denied = new WebcasterError("denied", { detail: "Your subscription is over", status: 403 });
    expect(String(denied)).toBe("WebcasterError 4001: The broadcast was not allowed: Your subscription is over");
    expect(denied).toMatchObject({ reason: "denied", code: 4001, status: 403, isTransient: false });
    expect(new WebcasterError("unreachable")).toMatchObject({ isTransient: true, detail: null });
  });
});

test("helpers do what their names say", () => {
  expect([HelperUtils.kbps(128), HelperUtils.mbps(2), HelperUtils.msToSecs(1_500)]).toEqual([128_000, 2_000_000, 1.5]);
  const people = [{ age: 3 }, { age: 1 }, { age: 2 }];
  const age = (person: { age: number }) => person.age;
  expect(HelperUtils.minBy(people, age)).toBe(people[1]);
  expect(HelperUtils.maxBy(people, age)).toBe(people[0]);
  expect(HelperUtils.meanBy(people, age)).toBe(2);
  expect(HelperUtils.minBy([], age)).toBeUndefined();
  expect([HelperUtils.orNull(undefined), HelperUtils.orZero(Number.NaN), HelperUtils.isEmpty({})]).toEqual([
    null,
    0,
    true,
  ]);
});
