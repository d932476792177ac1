/** The part of a vitest test case that this reporter reads. */
interface Reported {
  readonly fullName: string;
  diagnostic(): { readonly retryCount?: number } | undefined;
}

export default class RetriedTests {
  constructor(options?: { readonly print?: (line: string) => void });
  onTestCaseResult(test: Reported): void;
}

export function retriedIn(output: string): number;
