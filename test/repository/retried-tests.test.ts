// `npm test` reports how many tests were retried, even if they passed.
import { expect, test } from "vitest";
import RetriedTests, { retriedIn } from "../../scripts/retried-tests.mjs";

test("a test that passed at its second attempt is counted, and others are not", () => {
  const lines: string[] = [];
  const reporter = new RetriedTests({ print: (line) => void lines.push(line) });
  reporter.onTestCaseResult({ fullName: "at once", diagnostic: () => ({ retryCount: 0 }) });
  reporter.onTestCaseResult({ fullName: "skipped", diagnostic: () => undefined });
  reporter.onTestCaseResult({ fullName: "at last", diagnostic: () => ({ retryCount: 2 }) });
  expect(lines).toEqual(["tried again: at last (2 times)"]);
  expect(retriedIn(`a test\n${lines.join("\n")}\n the mark "tried again: " within a line\n`)).toBe(1);
});
