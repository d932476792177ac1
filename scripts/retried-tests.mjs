// A reporter for vitest: names each test that was tried again before it passed, one line each, for `npm test` to count.
// Not a judge: scripts/test.mjs decides what a retry means.

const MARK = "tried again: ";

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from there
export default class RetriedTests {
  #print;

  /** @param {{ readonly print?: (line: string) => void }} [options] where the lines go; vitest passes none */
  constructor({ print } = {}) {
    this.#print = print ?? ((line) => console.log(line));
  }

  /** Called by vitest after each test. */
  onTestCaseResult(test) {
    const { retryCount = 0 } = test.diagnostic() ?? {};
    if (retryCount > 0) this.#print(`${MARK}${test.fullName} (${retryCount} times)`);
  }
}

/** How many tests a run's output names as tried again. */
export function retriedIn(output) {
  return output.split("\n").filter((line) => line.startsWith(MARK)).length;
}
