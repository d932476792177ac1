// T1: exp and nbf are whole Unix seconds; exp lies in the future and within 365 days.
import { expect, test } from "vitest";
import { InvalidValue, WrongDataType } from "../ts/errors.ts";
import { expiryOf, unixTimeOf } from "../ts/token/expiry.ts";

/** Unix seconds. */
const NOW = 1_767_225_600;
const YEAR_S = 365 * 86_400;

test.each([null, undefined])("%s is no time, and no fault", (exp) => {
  expect(unixTimeOf({ exp }, "exp")).toBeNull();
  expect(expiryOf({ exp }, NOW)).toBeNull();
});

test.each([0, 1, NOW, Number.MAX_SAFE_INTEGER])("%d is a time", (nbf) => {
  expect(unixTimeOf({ nbf }, "nbf")).toBe(nbf);
});

test.each([1.5, -1, -0.5, Number.MAX_SAFE_INTEGER + 1, Number.NaN, Number.POSITIVE_INFINITY, "1", true, [], {}])(
  "%j is none",
  (nbf) => {
    expect(() => unixTimeOf({ nbf }, "nbf")).toThrow(WrongDataType);
    expect(() => expiryOf({ exp: nbf }, NOW)).toThrow(WrongDataType);
  },
);

test("an expiry is later than now and not later than 365 days from now", () => {
  for (const exp of [NOW + 1, NOW + YEAR_S]) expect(expiryOf({ exp }, NOW)).toBe(exp);
  for (const exp of [0, NOW - 1, NOW, NOW + YEAR_S + 1]) expect(() => expiryOf({ exp }, NOW)).toThrow(InvalidValue);
});
