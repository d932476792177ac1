// T1: exp is in the future and within 365 days.
import { expect, test } from "vitest";
import { InvalidValue } from "../../ts/errors.ts";
import { checkExpiry } from "../../ts/token/expiry.ts";

/** Unix seconds. */
const NOW = 1_767_225_600;
const YEAR_S = 365 * 86_400;

test("an expiry is later than now and not later than 365 days from now", () => {
  for (const exp of [NOW + 1, NOW + YEAR_S]) expect(() => checkExpiry(exp, NOW)).not.toThrow();
  for (const exp of [0, NOW - 1, NOW, NOW + YEAR_S + 1]) expect(() => checkExpiry(exp, NOW)).toThrow(InvalidValue);
});
