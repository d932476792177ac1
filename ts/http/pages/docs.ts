// /openapi.json and /docs: the generated API description, and a page that displays it without internet access. The
// page's own files are those of swagger-ui-dist, where the build has put them.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { ICON_LINK } from "../request/icon.ts";
import { baseUrlOf } from "../request/request.ts";
import { problemPage } from "../whip/problem-page.ts";

const FILES = join(import.meta.dirname, "..", "..", "..", "dist", "swagger-ui");
/** How long a browser may cache the page's files, seconds; they change only with a release. */
const FILES_CACHE_S = 86_400;
/** Nothing is loaded from elsewhere. Swagger UI writes style attributes. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Headgate API</title>
<script src="/docs/page.js"></script>
<link rel="stylesheet" href="/docs/swagger-ui.css">
${ICON_LINK}
<p style="margin: 0; padding: 10px 20px; font: 15px/1.4 system-ui, sans-serif; background: light-dark(#eceef2, #13161b)"><a href="/docs/guide" style="color: light-dark(#2b4fcf, #93aaff)">Guide: first broadcast, webhook, security, operation</a></p>
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js" defer></script>
</html>
`;
/** The colours are there before anything is drawn; Swagger UI has dark ones, but does not ask the system. */
const PAGE_SCRIPT = `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);
document.addEventListener("DOMContentLoaded", () =>
  SwaggerUIBundle({ url: "/openapi.json", dom_id: "#api", deepLinking: true, validatorUrl: null }));
`;

const SCRIPT_TYPE = "text/javascript; charset=utf-8";
const TYPES: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", SCRIPT_TYPE],
]);

export const DOCS_ROUTES = {
  "GET /openapi.json": {
    tag: "Documents",
    summary: "This document",
    description: "An OpenAPI 3.1 description of every route.",
    answer: z.looseObject({ openapi: z.string() }),
  },
  "GET /docs": {
    tag: "Documents",
    summary: "A page that shows this document",
    description: "Works without internet access.",
    answer: null,
  },
  "GET /docs/{file}": {
    tag: "Documents",
    summary: "Files of that page, and the list of WHIP problems",
    description: "`/docs/problems` explains the `type` of problem documents.",
    answer: null,
    answerType: "text/javascript",
    errors: [404],
  },
} satisfies Declarations;

export function docsRoutes(
  deps: RouteDeps & {
    readonly config: Parameters<typeof baseUrlOf>[1];
    /** The document without its `servers`. */
    readonly document: () => object;
  },
): Routes["hono"] {
  const routes = newRoutes(deps, DOCS_ROUTES);
  /** The page's files as sent, each read at its first request. */
  const files = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  const problems = problemPage();

  routes.open("GET /openapi.json", (c) =>
    c.json({ ...deps.document(), servers: [{ url: baseUrlOf(c, deps.config) }] }),
  );

  routes.open("GET /docs", (c) => {
    c.header("content-security-policy", PAGE_POLICY);
    return c.html(PAGE);
  });

  routes.open("GET /docs/{file}", async (c) => {
    const name = c.req.param("file");
    if (name === "problems") {
      c.header("content-security-policy", PAGE_POLICY);
      return c.html(problems);
    }
    const type = name === "page.js" ? SCRIPT_TYPE : TYPES.get(name);
    if (type === undefined) return c.notFound();
    c.header("cache-control", `public, max-age=${FILES_CACHE_S}`);
    if (name === "page.js") return c.body(PAGE_SCRIPT, 200, { "content-type": type });
    let file = files.get(name);
    if (file === undefined) {
      file = readFile(join(FILES, name)).then((bytes) => promisify(gzip)(bytes));
      files.set(name, file);
    }
    return c.body(await file, 200, { "content-type": type, "content-encoding": "gzip", vary: "accept-encoding" });
  });

  return routes.hono;
}
