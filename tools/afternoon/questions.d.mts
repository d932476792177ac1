export const QUESTIONS: readonly {
  readonly question: string;
  readonly clicks: readonly string[];
  readonly answer: readonly (string | RegExp)[];
}[];
