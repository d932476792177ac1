// Renders Markdown as HTML for the guide: headings get the same anchors as on forges, links between files become links
// between pages, and raw HTML in a text is escaped, except comments, which are left out.
import { createHash } from "node:crypto";
import { posix } from "node:path";
import { Marked, type Tokens } from "marked";
import { plain, slugs } from "./headings.ts";
import { escapeHtml } from "./html-text.ts";

/** Comments mark the generated parts of a file. */
const COMMENT = /^<!--(?:(?!-->)[\s\S])*-->\s*$/;

export interface Rendered {
  readonly html: string;
  /** Headings of the second level, for the page's table of contents. */
  readonly sections: readonly { readonly id: string; readonly title: string }[];
}

/** The page that shows a path of the repository, and its title. */
export interface Shown {
  readonly href: string;
  readonly title: string;
}

/** `path`: path of the file in the repository, the base of relative links. `shownAt`: null for targets without a page;
 *  their links become plain text. */
export function renderMarkdown(
  text: string,
  {
    path,
    shownAt,
    diagrams = {},
  }: {
    readonly path: string;
    readonly shownAt: (path: string) => Shown | null;
    /** SVG by the SHA-256 of a diagram's text; others are shown as text. */
    readonly diagrams?: Readonly<Record<string, string>>;
  },
): Rendered {
  const sections: { id: string; title: string }[] = [];
  const slug = slugs();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text: words }: Tokens.Heading) {
        const title = plain(words);
        const id = slug(title);
        if (depth === 2) sections.push({ id, title });
        const inner = this.parser.parseInline(tokens);
        const anchor = depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
        return `<h${depth} id="${id}">${inner}${anchor}</h${depth}>\n`;
      },
      link({ href, tokens, text: words }: Tokens.Link) {
        const inner = this.parser.parseInline(tokens);
        const to = target(href, path, shownAt);
        if (to === null) return inner;
        const isElsewhere = /^https?:/.test(to.href);
        // In a repository a link may show a file name; here it shows the page's title.
        const shown = /^[\w./-]+\.md$/.test(words) ? escapeHtml(to.title) : inner;
        return `<a href="${escapeHtml(to.href)}"${isElsewhere ? ' rel="noreferrer"' : ""}>${shown}</a>`;
      },
      code({ text: code, lang }: Tokens.Code) {
        const name = /^\w+/.exec(lang ?? "")?.[0];
        const drawing = diagrams[createHash("sha256").update(code).digest("hex")];
        if (name === "mermaid" && drawing !== undefined) return diagramWith(drawing, code);
        return `<pre tabindex="0"${name === undefined ? "" : ` data-language="${name}"`}><code>${escapeHtml(code)}\n</code></pre>\n`;
      },
      table(token: Tokens.Table) {
        const row = (cells: readonly Tokens.TableCell[], tag: "th" | "td") =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>\n`;
        const head = token.header.some(({ text: words }) => words !== "");
        return `<div class="table" tabindex="0"><table>${head ? `<thead>${row(token.header, "th")}</thead>` : ""}<tbody>\n${token.rows
          .map((cells) => row(cells, "td"))
          .join("")}</tbody></table></div>\n`;
      },
      html: ({ text: markup }: Tokens.HTML | Tokens.Tag) => (COMMENT.test(markup) ? "" : escapeHtml(markup)),
      image: ({ text: words }: Tokens.Image) => escapeHtml(words),
    },
  });
  return { html: marked.parse(text, { async: false }), sections };
}

function target(href: string, path: string, shownAt: (path: string) => Shown | null): Shown | null {
  if (/^(https?:|#)/.test(href)) return { href, title: href };
  if (/^[a-z][a-z+.-]*:/i.test(href)) return null;
  const [file = "", anchor] = href.split("#");
  const shown = shownAt(posix.normalize(posix.join(posix.dirname(path), file)));
  return shown === null || anchor === undefined ? shown : { ...shown, href: `${shown.href}#${anchor}` };
}

/** A drawing, and the text that it was made from for those who do not see it. */
function diagramWith(drawing: string, code: string): string {
  const svg = drawing.replace("<svg ", '<svg role="img" aria-label="A diagram, given as text below" ');
  return `<figure class="diagram" tabindex="0">${svg}<details><summary>As text</summary><pre tabindex="0"><code>${escapeHtml(code)}\n</code></pre></details></figure>\n`;
}
