// M13 as callers see it: twenty requests a second, sixty in a burst, each key separately.
import { afterEach, expect, test } from "vitest";
import { hashPassword } from "../../../ts/organisation/passwords.ts";
import { addPerson } from "../../../ts/organisation/people.ts";
import { createRequestRate } from "../../../ts/organisation/request-rate.ts";
import type { Role } from "../../../ts/store/tables/roles.ts";
import { type Gateway, openGateway, START_MS } from "../../support/gateway.ts";
import { casesOfRun } from "../../support/whole-run.ts";

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

const PASSWORD = "correct horse battery";

/** Adds a person and returns what opens a session of theirs: the headers of its requests. */
async function personWith({ db, clock, organisation, call }: Gateway, name: string, role: Role) {
  const email = `${name}@customer.example`;
  const of = { organisation_id: organisation.id, email, role, password_hash: await hashPassword(PASSWORD) };
  await addPerson(db, of, clock.ms);
  return async () => {
    const login = await call("POST", "/login", { key: null, body: { email, password: PASSWORD } });
    const { csrf_token } = login.body as { readonly csrf_token: string };
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    return { cookie, "x-csrf-token": csrf_token };
  };
}

const LIMITED: readonly (readonly [method: string, path: string, role: Role])[] = [
  ["GET", "/me", "readonly"],
  ["GET", "/stream?search=a", "readonly"],
  ["PUT", "/stream/none/tag", "user"],
  ["GET", "/organisation/audit", "administrator"],
];

test.each(casesOfRun(LIMITED, 2))(
  "a signed-in person has the same limit for %s %s: 429 with the time to wait",
  async (method, path, role) => {
    const { call, clock, ...rest } = await opened("20");
    const headers = await (await personWith({ call, clock, ...rest }, "ada", role))();
    const ask = () => call(method, path, { key: null, headers, ...(method === "PUT" && { body: { tags: [] } }) });
    for (let count = 1; count <= 60; count += 1) {
      const { status, headers: answered } = await ask();
      expect([status === 429, answered.get("ratelimit-remaining")]).toEqual([false, String(60 - count)]);
    }
    const refused = await ask();
    expect([refused.status, ...numbers(refused.headers)]).toEqual([429, "60", "0", "3", "1"]);
    clock.ms += 50;
    expect([(await ask()).status === 429, (await ask()).status]).toEqual([false, 429]);
  },
);

test("all sessions of a person share one limit, and other people and keys have their own", async () => {
  const gateway = await opened("1");
  const sessions = await personWith(gateway, "ada", "readonly");
  const [first, second] = [await sessions(), await sessions()];
  const grace = await (await personWith(gateway, "grace", "readonly"))();
  const status = async (headers: Readonly<Record<string, string>>) =>
    (await gateway.call("GET", "/stream", { key: null, headers })).status;
  for (let count = 1; count <= 60; count += 1) expect(await status(count % 2 === 0 ? first : second)).toBe(200);
  expect([await status(first), await status(second), await status(await sessions())]).toEqual([429, 429, 429]);
  expect([await status(grace), (await gateway.call("GET", "/stream")).status]).toEqual([200, 200]);
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

test("whoever tries keys that do not exist is refused ever later, and valid keys from there are not", async () => {
  const { call } = await opened("20");
  const tookMs = async (key: string | undefined, status: number) => {
    const began = performance.now();
    expect((await call("GET", "/organisation", key === undefined ? {} : { key })).status).toBe(status);
    return performance.now() - began;
  };
  for (let tries = 1; tries <= 12; tries += 1) await tookMs(`hg_${tries}`, 403);
  expect(await tookMs("hg_another", 403)).toBeGreaterThan(100);
  const refused = Array.from({ length: 40 }, (_, at) => tookMs(`hg_more${at}`, 403));
  const valid = tookMs(undefined, 200);
  expect(await Promise.race([valid.then(() => "valid"), Promise.all(refused).then(() => "refused")])).toBe("valid");
  expect(Math.max(...(await Promise.all(refused)))).toBeGreaterThan(900);
});

test("a caller that asks on gets its first refusals at once, later ones later, and none later than ten seconds", () => {
  const clock = { ms: START_MS, now: () => clock.ms };
  const rate = createRequestRate({ perSecond: 20, burst: 1 }, clock);
  expect(rate.take("a")).toMatchObject({ allowed: true, answerAfterMs: 0 });
  const waits = Array.from({ length: 220 }, () => rate.take("a").answerAfterMs);
  expect(waits).toEqual([
    ...Array(10).fill(0),
    ...Array.from({ length: 200 }, (_, at) => 50 * (at + 1)),
    ...Array(10).fill(10_000),
  ]);
  // Another caller does not wait for this one, nor does this one once it has.
  rate.take("b");
  expect(rate.take("b").answerAfterMs).toBe(0);
  clock.ms += 11_000;
  expect([rate.take("a").allowed, rate.take("a").answerAfterMs]).toEqual([true, 0]);
});

test.each([
  [1, 20],
  [200, 20],
  [1_000, 100],
])(
  "with %i connections that ask again at once, a caller gets no more than %i refusals a second",
  (connections, most) => {
    const clock = { ms: START_MS, now: () => clock.ms };
    const rate = createRequestRate({ perSecond: 1, burst: 1 }, clock);
    const answeredAt = new Array<number>(connections).fill(clock.ms);
    const [from, seconds] = [START_MS + 30_000, 30];
    let refused = 0;
    for (; clock.ms < from + seconds * 1_000; clock.ms += 10) {
      for (const [connection, at] of answeredAt.entries()) {
        if (at > clock.ms) continue;
        const { allowed, answerAfterMs } = rate.take("a");
        // The next request comes in the next step at the earliest.
        answeredAt[connection] = clock.ms + Math.max(answerAfterMs, 10);
        if (!allowed && clock.ms >= from) refused += 1;
      }
    }
    expect(refused / seconds).toBeLessThanOrEqual(most + 1);
  },
);

test("whoever hangs up while its refusal waits keeps nothing waiting here", async () => {
  const { app, keys, call } = await opened("1");
  for (let count = 1; count <= 60; count += 1) await call("GET", "/organisation");
  const headers = { "x-service-apikey": keys.administrator };
  const peer = { incoming: { socket: { remoteAddress: "203.0.113.7", remotePort: 1, remoteFamily: "IPv4" } } };
  const refusal = (gone: AbortController) => app.request("/organisation", { headers, signal: gone.signal }, peer);
  const [stays, leaves] = [new AbortController(), new AbortController()];
  const waiting = Promise.all(Array.from({ length: 100 }, () => refusal(stays)));
  const left = Promise.all(Array.from({ length: 100 }, () => refusal(leaves)));
  leaves.abort();
  // Those that left would have been answered last.
  expect(await Promise.race([left.then(() => "left"), waiting.then(() => "waiting")])).toBe("left");
  stays.abort();
  await waiting;
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
