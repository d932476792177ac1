/** What a test case of vitest says of itself, as far as this reporter looks. */
interface Reported {
  readonly fullName: string;
  diagnostic(): { readonly retryCount?: number } | undefined;
}

export default class RetriedTests {
  constructor(options?: { readonly print?: (line: string) => void });
  onTestCaseResult(test: Reported): void;
}

export function retriedIn(output: string): number;
