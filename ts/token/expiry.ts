// Times in a request for a token (T1): integer Unix seconds.
import { InvalidValue, WrongDataType } from "../errors.ts";

/** Longest validity there is, seconds. */
const VALIDITY_LIMIT_S = 365 * 86_400;

/** The member `exp`: in the future, and within 365 days of `now`. Null when it is absent. */
export function expiryOf(body: Readonly<Record<string, unknown>>, now: number): number | null {
  const exp = unixTimeOf(body, "exp");
  if (exp !== null && exp <= now) throw new InvalidValue("exp", "must be in the future");
  if (exp !== null && exp > now + VALIDITY_LIMIT_S) throw new InvalidValue("exp", "must be within 365 days");
  return exp;
}

/** A member that is a time; null when it is absent. */
export function unixTimeOf(body: Readonly<Record<string, unknown>>, name: string): number | null {
  const value = body[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new WrongDataType(name, "integer");
  return value;
}
