// The guide at /docs/guide: every file of docs is a page, every link has a target on the site and on a forge,
// a page loads nothing, and what is searched for is found.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderMarkdown, slugs } from "../../scripts/guide-markdown.mjs";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

let headgate: Headgate;
beforeAll(async () => {
  headgate = await startHeadgate();
});
afterAll(async () => {
  await headgate?.stop();
});

const files = [
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
  "SECURITY.md",
];
const nameOf = (path: string) => (path === "docs/README.md" ? "" : posix.basename(path, ".md").toLowerCase());
const page = async (name: string) => await fetch(`${headgate.http}/docs/guide${name === "" ? "" : `/${name}`}`);
/** The Markdown of a file without its code. */
const proseOf = (path: string) =>
  readFileSync(path, "utf8")
    .replace(/^```.*?^```$/gms, "")
    .replace(/`[^`\n]*`/g, "");

test("has each file of docs as a page, and links each page in the list beside it", async () => {
  for (const path of files) {
    const response = await page(nameOf(path));
    expect([path, response.status]).toEqual([path, 200]);
    const html = await response.text();
    const title = /^# (.+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "";
    expect(html).toContain(title.split(/[`&'"]/)[0]);
    for (const other of files) if (nameOf(other) !== "") expect(html).toContain(`href="/docs/guide/${nameOf(other)}"`);
  }
  expect((await page("nothing")).status).toBe(404);
  expect((await page("..%2f..%2fpackage")).status).toBe(404);
});

test("has no broken link on the site", async () => {
  const ids = new Map<string, Set<string>>();
  const links: [from: string, to: string][] = [];
  for (const path of files) {
    const html = await (await page(nameOf(path))).text();
    const address = `/docs/guide${nameOf(path) === "" ? "" : `/${nameOf(path)}`}`;
    ids.set(address, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id)));
    for (const [, href = ""] of html.matchAll(/ href="([^"]+)"/g)) {
      if (!/^(https?|data):/.test(href)) links.push([address, href.startsWith("#") ? `${address}${href}` : href]);
    }
  }
  const missing: string[] = [];
  for (const [from, to] of links) {
    const [address = "", id] = to.split("#");
    const known = ids.get(address);
    if (known === undefined ? !(await isServed(address)) : id !== undefined && !known.has(id))
      missing.push(`${from}: ${to}`);
  }
  expect(missing).toEqual([]);
});

const served = new Map<string, Promise<boolean>>();
function isServed(address: string): Promise<boolean> {
  const known = served.get(address) ?? fetch(headgate.http + address).then(({ status }) => status === 200);
  served.set(address, known);
  return known;
}

test("has no broken link on a forge", () => {
  const missing: string[] = [];
  for (const path of [...files, "README.md"]) {
    for (const [, href = ""] of proseOf(path).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(href)) continue;
      const [file = "", id] = href.split("#");
      const target = file === "" ? path : posix.normalize(posix.join(posix.dirname(path), file));
      if (!existsSync(target)) missing.push(`${path}: ${href}`);
      else if (id !== undefined && !anchorsOf(target).has(id)) missing.push(`${path}: ${href}`);
    }
  }
  expect(missing).toEqual([]);
});

function anchorsOf(path: string): ReadonlySet<string> {
  const slug = slugs();
  const text = readFileSync(path, "utf8").replace(/^```.*?^```$/gms, "");
  return new Set([...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, words = ""]) => slug(words.replaceAll("`", ""))));
}

test("loads nothing, runs only its own script, and is revalidated instead of fetched again", async () => {
  const response = await page("webhook");
  const policy = response.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; img-src data:;/);
  expect(policy).not.toContain("unsafe");
  const html = await response.text();
  expect(html).not.toMatch(/<script [^>]|<img|<iframe| on\w+=| style=/);
  expect([...html.matchAll(/ (?:src|action)="([^"]*)"/g)].map(([, to]) => to)).toEqual(["/docs/guide"]);
  const again = await fetch(`${headgate.http}/docs/guide/webhook`, {
    headers: { "if-none-match": response.headers.get("etag") ?? "" },
  });
  expect([again.status, again.headers.get("content-security-policy")]).toEqual([304, policy]);
});

test("finds sections by all of the words, those with them in a title first, and shows what was typed as text", async () => {
  const found = async (q: string) =>
    await (await fetch(`${headgate.http}/docs/guide?q=${encodeURIComponent(q)}`)).text();
  const html = await found("publish  KEYS");
  const [first = ""] = [...html.matchAll(/<li><a href="([^"]+)">/g)].map(([, href]) => href).slice(0, 1);
  expect(first).toBe("/docs/guide/security-model#names-and-publish-keys");
  expect(html).toMatch(/<mark>publish<\/mark>/i);
  expect(await found("zzyzx")).toContain("Nothing was found");
  for (const word of ["publish_done", "Retry-After", "&", "(", "[::]", "\\"]) {
    expect(await found(word)).toMatch(/<mark>|Nothing was found/);
  }
  expect(await found("publish_done")).toContain("<mark>publish_done</mark>");
  const odd = await found('"><b>.*(');
  expect(odd).toContain("&#34;&#62;&#60;b&#62;.*(");
  expect(odd).not.toContain("<b>");
  expect((await fetch(`${headgate.http}/docs/guide?q=${"x".repeat(101)}`)).status).toBe(400);
});

test("has every diagram as a drawing with its text, without a style that the policy refuses", async () => {
  for (const path of files) {
    const count = readFileSync(path, "utf8").match(/^```mermaid$/gm)?.length ?? 0;
    const html = await (await page(nameOf(path))).text();
    expect([path, html.match(/<figure class="diagram".*?<svg role="img"/gs)?.length ?? 0]).toEqual([path, count]);
    expect(html.split("<style>").length).toBe(2);
  }
});

test("serves the files for monitoring, and the API's page and the first page link to it", async () => {
  const alerts = await fetch(`${headgate.http}/docs/guide/file/alerts.yaml`);
  expect(await alerts.text()).toBe(readFileSync("docs/monitoring/alerts.yaml", "utf8"));
  expect((await fetch(`${headgate.http}/docs/guide/file/package.json`)).status).toBe(404);
  expect(await (await fetch(`${headgate.http}/docs`)).text()).toContain('href="/docs/guide"');
  const root = await fetch(headgate.http);
  expect([root.url, await root.text()]).toEqual([
    `${headgate.http}/dashboard/`,
    expect.stringContaining("/docs/guide"),
  ]);
});

describe("a text", () => {
  const render = (text: string) =>
    renderMarkdown(text, {
      path: "docs/a.md",
      shownAt: (path) => (path === "docs/b.md" ? { href: "/b", title: "The B" } : null),
    });

  test("may contain only Markdown, no other markup", () => {
    const { html } = render("a <script>x</script> **b** <b onclick=x>c</b> [d](javascript:alert) ![e](f.png)\n\n`<i>`");
    expect(html).not.toMatch(/<(script|b|img|i)\b/);
    expect(html).not.toContain("javascript:");
    expect(html).toContain("<strong>b</strong>");
  });

  test("is shown without its comments", () => {
    expect(render("a\n\n<!-- settings: a script -->\n\nb <!-- c --> d").html).not.toMatch(/settings|c --/);
    expect(render("<!-- a --> <script>").html).toContain("&#60;script");
  });

  test("has headings with the anchors of a forge, and links to other files", () => {
    const { html, sections } = render(
      "## The `a.b` & c\n## The `a.b` & c\n[b](b.md#x) [b.md](b.md) [c](c.md) [d](https://d.example)",
    );
    expect(sections.map(({ id }) => id)).toEqual(["the-ab--c", "the-ab--c-1"]);
    expect(html).toContain(
      '<a href="/b#x">b</a> <a href="/b">The B</a> c <a href="https://d.example" rel="noreferrer">d</a>',
    );
  });
});
