// Guessing of passwords: what is refused, and that nobody can lock another person out.
import { expect, test } from "vitest";
import { TooManyRequests } from "../../ts/errors.ts";
import { createLoginThrottle } from "../../ts/organisation/login-throttle.ts";

const throttle = () => createLoginThrottle({ now: () => 0 });
const attempts = (count: number, attempt: (at: number) => void) => {
  for (let at = 0; at < count; at += 1) attempt(at);
};

test("ten failures of a name from one address do not block the name from another", () => {
  const logins = throttle();
  attempts(10, () => logins.attempt("admin", "192.0.2.1"));
  expect(() => logins.attempt("admin", "192.0.2.1")).toThrow(TooManyRequests);
  logins.attempt("admin", "192.0.2.2");
  logins.succeeded("admin", "192.0.2.2");
});

test("an address may fail fifty times, whatever the names", () => {
  const logins = throttle();
  attempts(50, (at) => logins.attempt(`person-${at}`, "192.0.2.1"));
  expect(() => logins.attempt("somebody", "192.0.2.1")).toThrow(TooManyRequests);
});

test("a name may fail five hundred times, from whatever addresses", () => {
  const logins = throttle();
  attempts(500, (at) => logins.attempt("admin", `192.0.2.${at % 50}-${Math.floor(at / 50)}`));
  expect(() => logins.attempt("admin", "198.51.100.1")).toThrow(TooManyRequests);
});

test("all addresses of an IPv6 network count as one", () => {
  const logins = throttle();
  attempts(10, (at) => logins.attempt("admin", `2001:db8::${at}:1`));
  expect(() => logins.attempt("admin", "2001:db8:0:0:ffff::9")).toThrow(TooManyRequests);
  logins.attempt("admin", "2001:db8:0:1::9");
  attempts(10, (at) => logins.attempt("root", `2001::b:1:1:1:${at}`));
  expect(() => logins.attempt("root", "2001:0:0:b:2::")).toThrow(TooManyRequests);
});

test("unknown names do not displace the window of a name that is being guessed", () => {
  const logins = throttle();
  attempts(10, () => logins.attempt("admin", "192.0.2.1"));
  attempts(30_000, (at) => logins.attempt(`junk-${at}`, `198.51.${at % 250}.${Math.floor(at / 250)}`));
  expect(() => logins.attempt("admin", "192.0.2.1")).toThrow(TooManyRequests);
});

test("ten thousand windows are remembered; of the first ones with equally few failures the earliest is evicted", () => {
  const logins = throttle();
  const guess = (at: number) => logins.attempt(`person-${at}`, `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`);
  attempts(64, (at) => attempts(9, () => guess(at)));
  attempts(10_000 - 64, (at) => guess(64 + at));
  guess(10_000);
  // The tenth failure of a remembered window is its last, and an evicted one starts at zero.
  attempts(2, () => guess(0));
  guess(63);
  expect(() => guess(63)).toThrow(TooManyRequests);
});

test("an attempt whose password could not be checked does not count", () => {
  const logins = throttle();
  attempts(100, () => {
    logins.attempt("admin", "192.0.2.1");
    logins.unchecked("admin", "192.0.2.1");
  });
  attempts(10, () => logins.attempt("admin", "192.0.2.1"));
  expect(() => logins.attempt("admin", "192.0.2.1")).toThrow(TooManyRequests);
});

test("refused attempts with made-up names displace no window", () => {
  const logins = throttle();
  attempts(50, (at) => logins.attempt(`person-${at}`, "192.0.2.1"));
  attempts(9, () => logins.attempt("admin", "192.0.2.2"));
  let refused = 0;
  attempts(30_000, (at) => {
    try {
      logins.attempt(`junk-${at}`, "192.0.2.1");
    } catch (error) {
      if (error instanceof TooManyRequests) refused += 1;
    }
  });
  expect(refused).toBe(30_000);
  logins.attempt("admin", "192.0.2.2");
  expect(() => logins.attempt("admin", "192.0.2.2")).toThrow(TooManyRequests);
});

test("a lock-out ends after a quarter of an hour, also when the clock is set back meanwhile", () => {
  const clock = { ms: 86_400_000, now: () => clock.ms };
  const logins = createLoginThrottle(clock);
  attempts(10, () => logins.attempt("admin", "192.0.2.1"));
  clock.ms -= 80_000_000;
  expect(() => logins.attempt("admin", "192.0.2.1")).toThrow(TooManyRequests);
  clock.ms += 900_000;
  logins.attempt("admin", "192.0.2.1");
});
