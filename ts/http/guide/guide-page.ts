// One page of the guide as HTML, with the navigation beside it. It needs no script; its style sheet is inline, and the
// policy allows it by its hash.
import { createHash } from "node:crypto";
import type { Guide, GuideFile } from "./guide-files.ts";
import type { Rendered } from "./guide-markdown.ts";
import { GUIDE_STYLE } from "./guide-style.ts";
import { escapeHtml } from "./html-text.ts";

/** Nothing is loaded from elsewhere, no script runs. */
export const GUIDE_POLICY =
  `default-src 'none'; style-src 'sha256-${createHash("sha256").update(GUIDE_STYLE).digest("base64")}'; img-src data:; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The path of a page. */
export function addressOf({ name }: Pick<GuideFile, "name">): string {
  return name === "" ? "/docs/guide" : `/docs/guide/${name}`;
}

export function guidePage(guide: Guide, file: GuideFile, { html, sections }: Rendered): string {
  const all = [guide.first, ...guide.groups.flatMap(({ files }) => files)];
  const at = all.indexOf(file);
  const step = (next: GuideFile | undefined, rel: "prev" | "next") =>
    next === undefined ? "" : `<a rel="${rel}" href="${addressOf(next)}">${escapeHtml(next.title)}</a>`;
  const entry = (each: GuideFile) => {
    if (each !== file) return `<li><a href="${addressOf(each)}">${escapeHtml(each.title)}</a></li>`;
    const inside = sections.map(({ id, title }) => `<li><a href="#${id}">${escapeHtml(title)}</a></li>`).join("");
    return `<li><a href="${addressOf(each)}" aria-current="page">${escapeHtml(each.title)}</a>${inside === "" ? "" : `<ul>${inside}</ul>`}</li>`;
  };
  const groups = guide.groups.map(
    ({ title, files }) => `<h2>${escapeHtml(title)}</h2><ul>${files.map(entry).join("")}</ul>`,
  );
  const title = file === guide.first ? "Headgate guide" : `${file.title} · Headgate guide`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${GUIDE_STYLE}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header><a class="home" href="/docs/guide">Headgate <span>guide</span></a>
<nav aria-label="Other places"><a class="to-pages" href="#pages">All pages</a><a href="/docs">API</a><a href="/dashboard/">Dashboard</a><a href="/broadcast">Broadcast</a></nav></header>
<div class="columns">
<main id="content">
${html}<p class="steps">${step(all[at - 1], "prev")}${step(all[at + 1], "next")}</p>
</main>
<nav id="pages" aria-label="Pages of the guide">${groups.join("")}</nav>
</div>
</body>
</html>
`;
}
