// Suggestions for mistyped names.

/** The known name with the smallest edit distance to `name`. */
export function nearest(name: string, known: readonly string[]): string {
  return known.reduce((best, each) => (edits(name, each) < edits(name, best) ? each : best), known[0] ?? "");
}

/** The same when at most half of the letters differ, else null: an unrelated suggestion helps nobody. */
export function similar(name: string, known: readonly string[]): string | null {
  const best = nearest(name, known);
  return edits(name, best) <= Math.max(name.length, best.length) / 2 ? best : null;
}

/** Levenshtein distance. */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
