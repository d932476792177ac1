// The headings of the guide: their anchors, and their words without Markdown.

/** The anchor that a forge makes of a heading (GitHub's rule): lower case, words and hyphens, numbered when
 *  repeated. */
export function slugs(): (title: string) => string {
  const counts = new Map<string, number>();
  return (title) => {
    const base = title
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
      .replaceAll(" ", "-");
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    return count === 0 ? base : `${base}-${count}`;
  };
}

/** The text of a heading without Markdown syntax. */
export function plain(words: string): string {
  return words
    .replace(/`([^`]*)`/g, "$1")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\*+/g, "");
}
