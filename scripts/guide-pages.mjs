// `node scripts/guide-pages.mjs`: makes the pages of the guide, dist/guide/pages.json (its form is in
// ts/http/guide/guide-pages.ts), of docs/*.md and SECURITY.md. The navigation is the table of contents of docs/README.md; a
// file that is not in it comes last, so that none is missing. A Mermaid diagram becomes an SVG, which the page colours,
// light or dark: it has classes and presentation attributes but no style of its own, which the policy of the page would
// refuse.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderMermaidSVG } from "beautiful-mermaid";
import { root } from "./build.mjs";
import { partsOf, renderMarkdown } from "./guide-markdown.mjs";

const BUILT = join(root, "dist", "guide");
/** A row of the first page's table of contents: the title of a group, and links to its pages. */
const CONTENTS = /^\| \*\*(.+?)\*\* \| (.+) \|$/gm;
/** The first page, which a forge shows for the folder. */
const FIRST = "README";
/** Served as they are. */
const MONITORING = "docs/monitoring/";

const inDocs = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const found = new Map(
  [...inDocs.sort().map((name) => `docs/${name}`), "SECURITY.md"].map((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const name = nameOf(path);
    const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
    return [name, { name, path, href: name === "" ? "/docs/guide" : `/docs/guide/${name}`, title, text }];
  }),
);
const first = found.get("");
const named = [...first.text.matchAll(CONTENTS)].map(([, title, links]) => ({
  title,
  files: [...links.matchAll(/\(([^)]+)\)/g)].flatMap(([, link]) => found.get(nameOf(link)) ?? []),
}));
const listed = new Set([first, ...named.flatMap(({ files }) => files)]);
const others = { title: "More", files: [...found.values()].filter((file) => !listed.has(file)) };
const groups = [...named, others].filter(({ files }) => files.length > 0);
rmSync(BUILT, { recursive: true, force: true });
mkdirSync(BUILT, { recursive: true });
const guide = {
  first: pageOf(first),
  groups: groups.map(({ title, files }) => ({ title, files: files.map(pageOf) })),
};
writeFileSync(join(BUILT, "pages.json"), JSON.stringify(guide));

function nameOf(path) {
  const base = path.replace(/^.*\/|\.md$/g, "");
  return base === FIRST ? "" : base.toLowerCase();
}

function pageOf({ name, path, href, title, text }) {
  const parts = partsOf(text).map(({ id, title: section, text: words }) => {
    return { href: id === null ? href : `${href}#${id}`, titles: [title, section], text: words };
  });
  return { name, href, title, ...renderMarkdown(text, { path, shownAt, drawingOf }), parts };
}

function shownAt(path) {
  const file = [...found.values()].find((each) => each.path === path);
  if (file !== undefined) return file;
  const name = path.startsWith(MONITORING) ? path.slice(MONITORING.length) : "";
  return name !== "" && existsSync(join(root, path)) ? { href: `/docs/guide/file/${name}`, title: name } : null;
}

function drawingOf(text) {
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return withoutStyle(renderMermaidSVG(text, { transparent: true }), `d${hash}-`);
}

/** `prefix`: of its ids, so that several diagrams of a page do not share one. */
function withoutStyle(svg, prefix) {
  return svg
    .replace(/<style>.*?<\/style>\s*/s, "")
    .replaceAll(/ style="[^"]*"/g, "")
    .replaceAll(/ data-[\w-]+="[^"]*"/g, "")
    .replaceAll(/ id="([^"]+)"/g, ` id="${prefix}$1"`)
    .replaceAll(/url\(#([^)]+)\)/g, `url(#${prefix}$1)`)
    .replaceAll(/(\d+\.\d)\d+/g, "$1");
}
