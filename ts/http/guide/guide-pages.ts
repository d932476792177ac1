// The pages of the guide, as the build made them of docs/*.md and SECURITY.md (scripts/guide-pages.mjs).
import { readFile } from "node:fs/promises";

/** The same for the sources (`ts/http/guide`) and for the build (`dist/http/guide`). */
const PAGES = new URL("../../../dist/guide/pages.json", import.meta.url);

/** What a search can find: a page up to its first section, or a section. */
export interface GuidePart {
  readonly href: string;
  /** Of the page, and of the section within it; "" before its first one. */
  readonly titles: readonly [page: string, section: string];
  /** As it is written, in one line. */
  readonly text: string;
}

export interface GuidePage {
  /** As in `/docs/guide/NAME`; "" for the first page. */
  readonly name: string;
  /** Its path. */
  readonly href: string;
  /** The text of its first heading. */
  readonly title: string;
  readonly html: string;
  /** Headings of the second level, for the page's table of contents. */
  readonly sections: readonly { readonly id: string; readonly title: string }[];
  readonly parts: readonly GuidePart[];
}

export interface Guide {
  readonly first: GuidePage;
  readonly groups: readonly { readonly title: string; readonly files: readonly GuidePage[] }[];
}

export async function readGuide(): Promise<Guide> {
  return JSON.parse(await readFile(PAGES, "utf8")) as Guide;
}

/** In the order of the guide. */
export function pagesOf({ first, groups }: Guide): readonly GuidePage[] {
  return [first, ...groups.flatMap(({ files }) => files)];
}
