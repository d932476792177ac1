// A reporter for vitest: prints one line for each test that was retried before it passed, for `npm test` to count. What
// a retry means is decided in scripts/test.mjs.

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

/** How many tests a run's output reports as retried. */
export function retriedIn(output) {
  return output.split("\n").filter((line) => line.startsWith(MARK)).length;
}
