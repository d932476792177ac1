// Stored passwords: which match, which are too long to be checked, and how many are checked concurrently.
import { expect, test } from "vitest";
import { TooManyRequests } from "../../ts/errors.ts";
import { checkPassword, hashPassword, passwordHolds } from "../../ts/organisation/passwords.ts";

const PASSWORD = "correct horse battery";
/** Concurrent checks. */
const AT_ONCE = 8;

test("a password matches its own hash, and no password matches a missing one", async () => {
  const phc = await hashPassword(PASSWORD);
  expect(phc).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await passwordHolds(phc, PASSWORD)).toBe(true);
  expect(await passwordHolds(phc, `${PASSWORD}!`)).toBe(false);
  expect(await passwordHolds(null, "nobody")).toBe(false);
});

test("a password has 12 characters to 256 bytes, and a longer one matches nothing", async () => {
  expect(() => checkPassword("password", "x".repeat(11))).toThrow("at least 12 characters");
  checkPassword("password", "é".repeat(12));
  checkPassword("password", "x".repeat(256));
  expect(() => checkPassword("password", "é".repeat(129))).toThrow("256 bytes");
  expect(await passwordHolds(null, "x".repeat(257))).toBe(false);
});

test("eight are checked concurrently, and a ninth is refused until one of them is done", async () => {
  const checks = Array.from({ length: AT_ONCE }, () => passwordHolds(null, PASSWORD));
  await expect(passwordHolds(null, PASSWORD)).rejects.toThrow(TooManyRequests);
  expect(await Promise.all(checks)).toEqual(Array(AT_ONCE).fill(false));
  expect(await passwordHolds(null, PASSWORD)).toBe(false);
});

test("new passwords that are being hashed leave all places for checks", async () => {
  const hashes = Array.from({ length: 4 }, () => hashPassword(PASSWORD));
  await expect(hashPassword(PASSWORD)).rejects.toThrow(TooManyRequests);
  expect(await Promise.all(Array.from({ length: AT_ONCE }, () => passwordHolds(null, PASSWORD)))).not.toContain(true);
  await Promise.all(hashes);
});
