// How long a token may be valid (T1), in Unix seconds.
import { InvalidValue } from "../errors.ts";

/** Longest validity, seconds. */
const VALIDITY_LIMIT_S = 365 * 86_400;

/** Throws `InvalidValue` unless `exp` is in the future and within 365 days of `now`. */
export function checkExpiry(exp: number, now: number): void {
  if (exp <= now) throw new InvalidValue("exp", "must be in the future");
  if (exp > now + VALIDITY_LIMIT_S) throw new InvalidValue("exp", "must be within 365 days");
}
