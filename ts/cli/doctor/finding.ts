// The result of one check of `headgate doctor`.

export interface Good {
  readonly what: string;
  readonly state: "good";
  readonly detail: string;
}

/** `warning`: a service may still work. `bad`: it does not. */
export interface Trouble {
  readonly what: string;
  readonly state: "warning" | "bad";
  /** The problem. */
  readonly detail: string;
  /** Its consequence. */
  readonly why: string;
  /** How to fix it. */
  readonly remedy: string;
}

export type Finding = Good | Trouble;

export function good(what: string, detail: string): Good {
  return { what, state: "good", detail };
}

const SIGNS = { good: "ok  ", warning: "warn", bad: "BAD " };

/** For people: one line, and two more below it when something has to be done. */
export function linesOf(finding: Finding): readonly string[] {
  const first = `${SIGNS[finding.state]} ${finding.what}: ${finding.detail}`;
  if (finding.state === "good") return [first];
  return [first, `       why: ${finding.why}`, `       do:  ${finding.remedy}`];
}
