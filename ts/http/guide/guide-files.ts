// The files of the guide: docs/*.md and SECURITY.md, as they are in the repository. The order here is that of the
// navigation; a file that is not listed comes last, so that none is missing.
import { readdir, readFile } from "node:fs/promises";

/** The repository's folder, both for the sources (`ts/http/guide`) and for the build (`dist/http/guide`). */
const ROOT = new URL("../../../", import.meta.url);

/** Titles of groups, and names of files in docs without `.md`; missing files are left out. */
const GROUPS: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["Start", ["installation", "first-broadcast", "broadcast-page", "dashboard"]],
  ["Decide who may publish", ["webhook", "security-model", "management", "sign-in"]],
  ["Publish and play", ["rtmp", "whip", "broadcasting", "v5"]],
  [
    "Run it",
    [
      ...["production", "installation-debian", "runtimes", "settings", "sizing", "operating", "upgrade", "cluster"],
      ...["troubleshooting", "capture", "runbook", "monitoring"],
    ],
  ],
  ["Internals", ["architecture", "decisions", "measurements", "peers", "security"]],
];
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
  const named = GROUPS.map(([title, names]) => ({
    title,
    files: names.map((name) => found.get(name)).filter((file) => file !== undefined),
  }));
  const listed = new Set(["", ...GROUPS.flatMap(([, names]) => names)]);
  const others = [...found.values()].filter(({ name }) => !listed.has(name));
  const groups = others.length === 0 ? named : [...named, { title: "More", files: others }];
  return { first, groups: groups.filter(({ files }) => files.length > 0) };
}

async function readOne(root: URL, path: string): Promise<GuideFile | null> {
  const text = await readFile(new URL(path, root), "utf8").catch(() => null);
  if (text === null) return null; // a release may come without SECURITY.md
  const base = path.replace(/^.*\/|\.md$/g, "");
  const name = base === FIRST ? "" : base.toLowerCase();
  const title = /^# (.+)$/m.exec(text)?.[1] ?? base;
  return { name, path, title, text };
}
