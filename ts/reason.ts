// Why something failed, as text for people.

/** What was thrown, in its own words. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
