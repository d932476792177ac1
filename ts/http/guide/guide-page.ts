// One page of the guide as HTML, with the navigation beside it. It needs no script: the only one adds buttons that copy.
// Style sheet and script are inline, and the policy allows them by their hashes.
import { createHash } from "node:crypto";
import { ICON_LINK } from "../request/icon.ts";
import { type Guide, type GuidePage, pagesOf } from "./guide-pages.ts";
import { GUIDE_STYLE } from "./guide-style.ts";
import { escapeHtml } from "./html-text.ts";

/** Characters that may be searched for. */
export const SEARCH_LIMIT = 100;

const GUIDE_SCRIPT = `for (const code of document.querySelectorAll("main pre > code")) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  const say = (words) => {
    button.textContent = words;
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  };
  button.addEventListener("click", () => {
    const written = navigator.clipboard?.writeText(code.textContent.trimEnd()) ?? Promise.reject();
    written.then(() => say("Copied"), () => {
      getSelection().selectAllChildren(code);
      say("Selected: press Ctrl+C");
    });
  });
  const block = Object.assign(document.createElement("div"), { className: "block" });
  code.parentElement.replaceWith(block);
  block.append(code.parentElement, button);
}
`;

/** Nothing is loaded from elsewhere; the search is a form of this service. */
export const GUIDE_POLICY =
  `default-src 'none'; style-src '${hashOf(GUIDE_STYLE)}'; script-src '${hashOf(GUIDE_SCRIPT)}'; img-src data:; ` +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** `shown`: a page of the guide, or what a search for these words found. */
export function guidePage(
  guide: Guide,
  shown: GuidePage | { readonly searched: string; readonly html: string },
): string {
  const [file, searched] = "searched" in shown ? [null, shown.searched] : [shown, null];
  const all = pagesOf(guide);
  const at = file === null ? all.length + 1 : all.indexOf(file);
  const step = (next: GuidePage | undefined, rel: "prev" | "next") =>
    next === undefined ? "" : `<a rel="${rel}" href="${next.href}">${escapeHtml(next.title)}</a>`;
  const entry = (each: GuidePage) => {
    if (each !== file) return `<li><a href="${each.href}">${escapeHtml(each.title)}</a></li>`;
    const inside = each.sections.map(({ id, title }) => `<li><a href="#${id}">${escapeHtml(title)}</a></li>`).join("");
    return `<li><a href="${each.href}" aria-current="page">${escapeHtml(each.title)}</a>${inside === "" ? "" : `<ul>${inside}</ul>`}</li>`;
  };
  const groups = guide.groups.map(
    ({ title, files }) => `<h2>${escapeHtml(title)}</h2><ul>${files.map(entry).join("")}</ul>`,
  );
  const own = searched === null ? file?.title : `Search: ${searched}`;
  const title = file === guide.first || own === undefined ? "Headgate guide" : `${own} · Headgate guide`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
${ICON_LINK}
<style>${GUIDE_STYLE}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header><a class="home" href="/docs/guide">Headgate <span>guide</span></a>
<form class="find" role="search" action="/docs/guide"><input type="search" name="q" required maxlength="${SEARCH_LIMIT}" aria-label="Search the guide" placeholder="Search"${searched === null ? "" : ` value="${escapeHtml(searched)}"`}><button>Search</button></form>
<nav aria-label="Other places"><a class="to-pages" href="#pages">All pages</a><a href="/docs">API</a><a href="/dashboard/">Dashboard</a><a href="/broadcast">Broadcast</a></nav></header>
<div class="columns">
<main id="content">
${shown.html}<p class="steps">${step(all[at - 1], "prev")}${step(all[at + 1], "next")}</p>
</main>
<nav id="pages" aria-label="Pages of the guide">${groups.join("")}</nav>
</div>
<script>${GUIDE_SCRIPT}</script>
</body>
</html>
`;
}
