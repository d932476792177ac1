// `npm test` says how many tests were tried again, whatever made them pass.
import { expect, test } from "vitest";
import RetriedTests, { retriedIn } from "../scripts/retried-tests.mjs";

test("a test that passed at its second try is counted, and the others are not", () => {
  const lines: string[] = [];
  const reporter = new RetriedTests({ print: (line) => void lines.push(line) });
  reporter.onTestCaseResult({ fullName: "at once", diagnostic: () => ({ retryCount: 0 }) });
  reporter.onTestCaseResult({ fullName: "skipped", diagnostic: () => undefined });
  reporter.onTestCaseResult({ fullName: "at last", diagnostic: () => ({ retryCount: 2 }) });
  expect(lines).toEqual(["tried again: at last (2 times)"]);
  expect(retriedIn(`a test\n${lines.join("\n")}\n the mark "tried again: " within a line\n`)).toBe(1);
});
