// What `headgate doctor` says of one thing it looked at.

export interface Good {
  readonly what: string;
  readonly state: "good";
  readonly detail: string;
}

/** `warning`: a service may work all the same. `bad`: it does not. */
export interface Trouble {
  readonly what: string;
  readonly state: "warning" | "bad";
  /** What is wrong. */
  readonly detail: string;
  /** What comes of it. */
  readonly why: string;
  /** What mends it. */
  readonly remedy: string;
}

export type Finding = Good | Trouble;

export function good(what: string, detail: string): Good {
  return { what, state: "good", detail };
}

const SIGNS = { good: "ok  ", warning: "warn", bad: "BAD " };

/** For people: a line, and two more below it where something is to be done. */
export function linesOf(finding: Finding): readonly string[] {
  const first = `${SIGNS[finding.state]} ${finding.what}: ${finding.detail}`;
  if (finding.state === "good") return [first];
  return [first, `       why: ${finding.why}`, `       do:  ${finding.remedy}`];
}
