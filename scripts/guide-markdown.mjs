// Renders Markdown as HTML for the guide: headings get the same anchors as on forges, links between files become links
// between pages, and raw HTML in a text is escaped, except comments, which are left out.
import { posix } from "node:path";
import { Marked } from "marked";
import { escapeHtml } from "../dist/http/guide/html-text.js";

/** Comments mark the generated parts of a file. */
const COMMENT = /^<!--(?:(?!-->)[\s\S])*-->\s*$/;

/** `path`: path of the file in the repository, the base of relative links. `shownAt`: null for targets without a page;
 *  their links become plain text. `drawingOf`: the SVG of a Mermaid diagram; without it they are shown as text. */
export function renderMarkdown(text, { path, shownAt, drawingOf = null }) {
  const sections = [];
  const slug = slugs();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text: words }) {
        const title = plain(words);
        const id = slug(title);
        if (depth === 2) sections.push({ id, title });
        const inner = this.parser.parseInline(tokens);
        const anchor = depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
        return `<h${depth} id="${id}">${inner}${anchor}</h${depth}>\n`;
      },
      link({ href, tokens, text: words }) {
        const inner = this.parser.parseInline(tokens);
        const to = target(href, path, shownAt);
        if (to === null) return inner;
        const isElsewhere = /^https?:/.test(to.href);
        // In a repository a link may show a file name; here it shows the page's title.
        const shown = /^[\w./-]+\.md$/.test(words) ? escapeHtml(to.title) : inner;
        return `<a href="${escapeHtml(to.href)}"${isElsewhere ? ' rel="noreferrer"' : ""}>${shown}</a>`;
      },
      code({ text: code, lang }) {
        const name = /^\w+/.exec(lang ?? "")?.[0];
        if (name === "mermaid" && drawingOf !== null) return diagramWith(drawingOf(code), code);
        return `<pre tabindex="0"${name === undefined ? "" : ` data-language="${name}"`}><code>${escapeHtml(code)}\n</code></pre>\n`;
      },
      table({ header, rows }) {
        const row = (cells, tag) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>\n`;
        const head = header.some(({ text: words }) => words !== "") ? `<thead>${row(header, "th")}</thead>` : "";
        const body = rows.map((cells) => row(cells, "td")).join("");
        return `<div class="table" tabindex="0"><table>${head}<tbody>\n${body}</tbody></table></div>\n`;
      },
      html: ({ text: markup }) => (COMMENT.test(markup) ? "" : escapeHtml(markup)),
      image: ({ text: words }) => escapeHtml(words),
    },
  });
  return { html: marked.parse(text, { async: false }), sections };
}

/** The parts of a text that begin with a heading, for the search: the text as it is written, in one line. */
export function partsOf(text) {
  const slug = slugs();
  return text.split(/^(?=#{1,6} )/m).map((part) => {
    const [, signs = "", words = ""] = /^(#+) (.+)$/m.exec(part) ?? [];
    const title = plain(words);
    const id = slug(title);
    const isPage = signs.length < 2;
    const bare = part
      .replace(/^#+ .+$/m, "")
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll(/[`*|\s]+/g, " ")
      .trim();
    return { id: isPage ? null : id, title: isPage ? "" : title, text: bare };
  });
}

/** The anchor that a forge makes of a heading (GitHub's rule): lower case, words and hyphens, numbered when
 *  repeated. */
export function slugs() {
  const counts = new Map();
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
function plain(words) {
  return words
    .replace(/`([^`]*)`/g, "$1")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\*+/g, "");
}

function target(href, path, shownAt) {
  if (/^(https?:|#)/.test(href)) return { href, title: href };
  if (/^[a-z][a-z+.-]*:/i.test(href)) return null;
  const [file = "", anchor] = href.split("#");
  const shown = shownAt(posix.normalize(posix.join(posix.dirname(path), file)));
  return shown === null || anchor === undefined ? shown : { ...shown, href: `${shown.href}#${anchor}` };
}

/** A drawing, and the text that it was made from for those who do not see it. */
function diagramWith(drawing, code) {
  const svg = drawing.replace("<svg ", '<svg role="img" aria-label="A diagram, given as text below" ');
  return `<figure class="diagram" tabindex="0">${svg}<details><summary>As text</summary><pre tabindex="0"><code>${escapeHtml(code)}\n</code></pre></details></figure>\n`;
}
