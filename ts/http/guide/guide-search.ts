// The search of the guide: the sections in which all words occur, the ones that have them in a title first.
import type { GuidePart } from "./guide-pages.ts";
import { escapeHtml } from "./html-text.ts";

/** Words that are searched for, and sections that are shown. */
const WORDS_LIMIT = 8;
const FOUND_LIMIT = 30;
/** Shown around the first word, characters. */
const BEFORE = 60;
const EXCERPT = 220;

/** A page's content: what was found. */
export function foundHtml(parts: readonly GuidePart[], searched: string): string {
  const words = searched
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .slice(0, WORDS_LIMIT);
  const found = words.length === 0 ? [] : parts.map((part) => ({ part, rank: rankOf(part, words) }));
  const best = found.filter(({ rank }) => rank > 0).sort((one, other) => other.rank - one.rank);
  const count = best.length === 0 ? "Nothing was found" : best.length === 1 ? "One section" : `${best.length} sections`;
  const rows = best.slice(0, FOUND_LIMIT).map(({ part: { href, titles, text } }) => {
    const title = titles.filter((each) => each !== "").join(": ");
    return `<li><a href="${escapeHtml(href)}">${escapeHtml(title)}</a><p>${excerptOf(text, words)}</p></li>`;
  });
  const more = best.length > FOUND_LIMIT ? `, of which the first ${FOUND_LIMIT} are shown` : "";
  return `<h1>${escapeHtml(searched)}</h1><p>${count}${more}.</p>${rows.length === 0 ? "" : `<ol class="found">${rows.join("")}</ol>`}`;
}

/** 0: a word is missing. Words in titles count more than in the text. */
function rankOf({ titles, text }: GuidePart, words: readonly string[]): number {
  const [page, section, body] = [...titles, text].map((part) => part.toLowerCase());
  let rank = 0;
  for (const word of words) {
    const points = (section?.includes(word) ? 8 : 0) + (page?.includes(word) ? 4 : 0) + (body?.includes(word) ? 1 : 0);
    if (points === 0) return 0;
    rank += points;
  }
  return rank;
}

/** The text around the first of the words, with all of them marked. */
function excerptOf(text: string, words: readonly string[]): string {
  const first = Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0), text.length);
  const from = first === text.length ? 0 : Math.max(0, first - BEFORE);
  const shown = text.slice(from, from + EXCERPT);
  const any = new RegExp(`(${words.map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|")})`, "giu");
  const marked = shown
    .split(any)
    .map((part, at) => (at % 2 === 1 ? `<mark>${escapeHtml(part)}</mark>` : escapeHtml(part)));
  return `${from > 0 ? "… " : ""}${marked.join("")}${from + EXCERPT < text.length ? " …" : ""}`;
}
