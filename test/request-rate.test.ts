// M13 as callers see it: twenty requests a second, sixty in a burst, each key separately.
import { afterEach, expect, test } from "vitest";
import { createRequestRate } from "../ts/organisation/request-rate.ts";
import { type Gateway, openGateway, START_MS } from "./support/gateway.ts";

let gateway: Gateway | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

const opened = async (perSecond: string) => {
  gateway = await openGateway({ HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: perSecond });
  return gateway;
};

const numbers = (headers: Headers) =>
  ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"].map((name) => headers.get(name));

test("a burst of sixty is answered, the next request gets 429 with the time to wait", async () => {
  const { call, clock, keys } = await opened("20");
  for (let count = 1; count <= 60; count += 1) {
    const { status, headers } = await call("GET", "/organisation");
    expect([status, headers.get("ratelimit-remaining")]).toEqual([200, String(60 - count)]);
  }
  const refused = await call("GET", "/organisation");
  expect(refused.status).toBe(429);
  expect(refused.body).toEqual({ error: { code: 9429, message: "Too many requests", userinfo: {} } });
  expect(numbers(refused.headers)).toEqual(["60", "0", "3", "1"]);
  expect((await call("GET", "/organisation", { key: keys.user })).status).toBe(200);

  clock.ms += 50;
  expect((await call("GET", "/organisation")).status).toBe(200);
  expect((await call("GET", "/organisation")).status).toBe(429);
  clock.ms += 3_000;
  expect(numbers((await call("GET", "/organisation")).headers)).toEqual(["60", "59", "1", null]);
});

test("the token service refuses in its own format", async () => {
  const { call } = await opened("1");
  const create = () => call("POST", "/webcaster", { body: { streamname: "a", ingesturl: "b" } });
  for (let count = 1; count <= 60; count += 1) expect((await create()).status).toBe(200);
  expect((await create()).body).toEqual({ success: false, errorCode: 9429, message: "Too many requests" });
});

test("requests without a key are not counted, and a limit of 0 disables counting", async () => {
  const limited = await opened("1");
  for (let count = 1; count <= 70; count += 1) {
    const { status, headers } = await limited.call("GET", "/.well-known/jwks.json", { key: null });
    expect([status, headers.get("ratelimit-limit")]).toEqual([200, null]);
  }
  await limited.close();
  const { call } = await opened("0");
  for (let count = 1; count <= 70; count += 1) expect((await call("GET", "/organisation")).status).toBe(200);
});

test("over time a caller gets its rate and not more, and a clock that is set back blocks nobody", () => {
  const clock = { ms: START_MS, now: () => clock.ms };
  const rate = createRequestRate({ perSecond: 20, burst: 60 }, clock);
  let allowed = 0;
  for (; clock.ms < START_MS + 10_000; clock.ms += 10) if (rate.take("a").allowed) allowed += 1;
  expect(allowed).toBe(60 + 200 - 1);
  clock.ms -= 86_400_000;
  expect(rate.take("a").retryAfterS).toBeLessThanOrEqual(1);
  clock.ms += 50;
  expect(rate.take("a").allowed).toBe(true);
});

test.each([1_000, 10_000, 3_600_000, 400 * 86_400_000])(
  "a clock that is set back by %i ms takes nothing from a caller, and what was used is refilled as before",
  (stepMs) => {
    const clock = { ms: START_MS, now: () => clock.ms };
    const rate = createRequestRate({ perSecond: 20, burst: 60 }, clock);
    for (let count = 0; count < 10; count += 1) rate.take("honest");
    clock.ms -= stepMs;
    expect(rate.take("honest")).toMatchObject({ allowed: true, remaining: 49 });
    for (let count = 0; count < 49; count += 1) expect(rate.take("honest").allowed).toBe(true);
    expect(rate.take("honest")).toMatchObject({ allowed: false, retryAfterS: 1 });
    clock.ms += 500;
    expect(rate.take("honest")).toMatchObject({ allowed: true, remaining: 9 });
  },
);
