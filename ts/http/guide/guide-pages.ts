// The files of the guide: docs/*.md and SECURITY.md, as they are in the repository. The navigation is the table of contents
// of docs/README.md; a file that is not in it comes last, so that none is missing.
import { readdir, readFile } from "node:fs/promises";

/** The repository's folder, both for the sources (`ts/http/guide`) and for the build (`dist/http/guide`). */
const ROOT = new URL("../../../", import.meta.url);

/** A row of the first page's table of contents: the title of a group, and links to its pages. */
const CONTENTS = /^\| \*\*(.+?)\*\* \| (.+) \|$/gm;
/** The first page, which a forge shows for the folder. */
const FIRST = "README";

export interface GuideFile {
  /** As in `/docs/guide/NAME`; "" for the first page. */
  readonly name: string;
  /** Path in the repository, for links. */
  readonly path: string;
  /** The text of its first heading. */
  readonly title: string;
  readonly text: string;
}

export interface GuideGroup {
  readonly title: string;
  readonly files: readonly GuideFile[];
}

export interface Guide {
  readonly first: GuideFile;
  readonly groups: readonly GuideGroup[];
}

/** Reads all files. Rejects when the first page is missing. */
export async function readGuide(root = ROOT): Promise<Guide> {
  const inDocs = (await readdir(new URL("docs/", root))).filter((name) => name.endsWith(".md"));
  const found = new Map<string, GuideFile>();
  for (const path of [...inDocs.sort().map((name) => `docs/${name}`), "SECURITY.md"]) {
    const file = await readOne(root, path);
    if (file !== null) found.set(file.name, file);
  }
  const first = found.get("");
  if (first === undefined) throw new Error(`docs/${FIRST}.md is missing`);
  const named = [...first.text.matchAll(CONTENTS)].map(([, title = "", links = ""]) => ({
    title,
    files: [...links.matchAll(/\(([^)]+)\)/g)]
      .map(([, link = ""]) => found.get(nameOf(link)))
      .filter((file) => file !== undefined),
  }));
  const listed = new Set(["", ...named.flatMap(({ files }) => files.map(({ name }) => name))]);
  const others = [...found.values()].filter(({ name }) => !listed.has(name));
  const groups = others.length === 0 ? named : [...named, { title: "More", files: others }];
  return { first, groups: groups.filter(({ files }) => files.length > 0) };
}

async function readOne(root: URL, path: string): Promise<GuideFile | null> {
  const text = await readFile(new URL(path, root), "utf8").catch(() => null);
  if (text === null) return null; // a release may come without SECURITY.md
  const name = nameOf(path);
  const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
  return { name, path, title, text };
}

function nameOf(path: string): string {
  const base = path.replace(/^.*\/|\.md$/g, "");
  return base === FIRST ? "" : base.toLowerCase();
}
