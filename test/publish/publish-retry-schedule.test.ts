// When publish_done is tried again: decision W17.
import { describe, expect, test } from "vitest";
import type { WebhookAnswer } from "../../ts/publish/webhook/answer.ts";
import { LIFETIME_MS, refusalsAfter, verdictOf } from "../../ts/publish/webhook/outbox/retry-schedule.ts";

const NOW = 1_767_225_600_000;
const HOUR = 3_600_000;
const answered = (status: number, retryAfter: string | null = null): WebhookAnswer => ({
  outcome: "answered",
  status,
  reason: null,
  retryAfter,
});
const timeout: WebhookAnswer = { outcome: "unreachable", cause: "deadline", detail: "no answer in time" };
/** As if every answer had been like this one. */
const judge = (answer: WebhookAnswer, attempts = 1, age = 0, random = 0.5) =>
  verdictOf(
    answer,
    { attempts, createdAt: NOW - age, refusals: { count: attempts, since: NOW - age }, lifetimeMs: LIFETIME_MS },
    NOW,
    random,
  );
const delay = (...args: Parameters<typeof judge>) => {
  const verdict = judge(...args);
  return verdict.next === "retry" ? verdict.at - NOW : verdict.next;
};

describe("a delivery", () => {
  test.each([200, 201, 204, 299, 410])("answered %i is done", (status) => {
    expect(delay(answered(status), 9, 80 * HOUR)).toBe("delivered");
  });

  test.each([301, 307, 408, 429, 500, 503])("answered %i is retried after 1, 5, 30, 120, 600, 600 s", (status) => {
    expect([1, 2, 3, 4, 5, 6, 50].map((attempts) => delay(answered(status), attempts))).toEqual([
      1_000, 5_000, 30_000, 120_000, 600_000, 600_000, 600_000,
    ]);
  });

  test("without an answer is retried until 72 h have passed", () => {
    expect(delay(timeout, 400, 71 * HOUR)).toBe(600_000);
    expect(delay(timeout, 400, 72 * HOUR)).toBe("given_up");
  });

  test.each([400, 401, 403, 404, 422])("answered %i has five attempts within an hour", (status) => {
    let age = 0;
    for (let attempts = 1; attempts < 5; attempts += 1) age += Number(delay(answered(status), attempts, age));
    expect(age).toBeLessThan(HOUR);
    expect(delay(answered(status), 5, age)).toBe("given_up");
  });

  test.each([
    [5, 156_000],
    [20, 2 * HOUR],
  ])("that a 4xx answers for the first time, on attempt %i, is tried five times from then on", (attempts, age) => {
    const event = { attempts, createdAt: NOW - age, lifetimeMs: LIFETIME_MS };
    const refusals = refusalsAfter(answered(404), { count: 0, since: null }, NOW);
    expect(refusals).toEqual({ count: 1, since: NOW });
    expect(verdictOf(answered(404), { ...event, refusals }, NOW, 0.5)).toEqual({ next: "retry", at: NOW + 1_000 });
  });

  test("is refused again only by 4xx in a row, whatever was not tried in between", () => {
    const twice = { count: 2, since: NOW - 9_000 };
    expect(refusalsAfter(answered(403), twice, NOW)).toEqual({ count: 3, since: NOW - 9_000 });
    const untried: WebhookAnswer = { outcome: "unreachable", cause: "no_place", detail: "" };
    expect(refusalsAfter(untried, twice, NOW)).toEqual(twice);
    for (const answer of [timeout, answered(503), answered(429), answered(410)]) {
      expect(refusalsAfter(answer, twice, NOW)).toEqual({ count: 0, since: null });
    }
  });

  test("is randomised by a tenth either way", () => {
    expect(delay(timeout, 2, 0, 0)).toBe(4_500);
    expect(delay(timeout, 2, 0, 1)).toBe(5_500);
  });

  test("honours Retry-After in seconds and as a date, but never past a day or sooner than the schedule", () => {
    expect(delay(answered(503, "90"))).toBe(90_000);
    expect(delay(answered(429, new Date(NOW + 20_000).toUTCString()))).toBe(20_000);
    expect(delay(answered(503, "99999999"))).toBe(24 * HOUR);
    expect(delay(answered(503, "0"), 3)).toBe(30_000);
    expect(delay(answered(503, " 90.5 "))).toBe(90_500);
    for (const odd of ["-3600", "9999-01-01", "60, 3600", "", "soon"]) expect(delay(answered(503, odd))).toBe(1_000);
    expect(delay(answered(503, "soon"), 3)).toBe(30_000);
    expect(delay(answered(503, "-5"), 3)).toBe(30_000);
  });

  test("is not given up because of a long Retry-After while there is time to retry", () => {
    expect(delay(answered(503, "86400"), 80, 60 * HOUR)).toBe(12 * HOUR);
    expect(delay(answered(503, "86400"), 80, 72 * HOUR)).toBe("given_up");
    expect([1, 2, 3, 4].map((attempts) => delay(answered(404, "7200"), attempts))).toEqual([
      1_000, 30_000, 300_000, 1_800_000,
    ]);
  });
});
