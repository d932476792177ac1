// /docs/guide: the guide of this version, from the files that ship with it. It needs no internet access and no script.
import { readFile } from "node:fs/promises";
import type { Context } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { type Declarations, newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { type Guide, readGuide } from "./guide-files.ts";
import { addressOf, GUIDE_POLICY, guidePage } from "./guide-page.ts";

/** Files from docs/monitoring for operators to download. */
const FILES = ["alerts.yaml", "grafana.json"];
const FILES_FOLDER = "docs/monitoring/";

export const GUIDE_ROUTES = {
  "GET /docs/guide": {
    tag: "Documents",
    summary: "The guide",
    description:
      "First broadcast, webhook, security, production, troubleshooting. Works without internet access and scripts.",
    answer: null,
  },
  "GET /docs/guide/{page}": {
    tag: "Documents",
    summary: "A page of the guide",
    description: "Named after its file in `docs`, without `.md`.",
    answer: null,
    errors: [404],
  },
  "GET /docs/guide/file/{file}": {
    tag: "Documents",
    summary: "Files for monitoring",
    description: "`alerts.yaml` for Prometheus, `grafana.json` for Grafana.",
    answer: null,
    answerType: "text/plain",
    errors: [404],
  },
} satisfies Declarations;

export function guideRoutes(deps: RouteDeps): Routes["hono"] {
  const routes = newRoutes(deps, GUIDE_ROUTES);
  /** All pages by name, rendered at the first request: they change only with a release. */
  let rendering: Promise<ReadonlyMap<string, string>> | null = null;

  async function serve(c: Context, name: string) {
    rendering ??= readGuide().then(pagesOf);
    rendering.catch(() => (rendering = null));
    const page = (await rendering).get(name);
    if (page === undefined) return c.notFound();
    c.header("content-security-policy", GUIDE_POLICY);
    c.header("x-frame-options", "DENY");
    c.header("cache-control", "no-cache");
    return c.html(page);
  }

  const retainedHeaders = [...RETAINED_304_HEADERS, "content-security-policy", "x-frame-options"];
  routes.hono.use("/docs/guide", etag({ retainedHeaders }));
  routes.hono.use("/docs/guide/*", etag({ retainedHeaders }));
  routes.open("GET /docs/guide", (c) => serve(c, ""));
  routes.open("GET /docs/guide/{page}", (c) => serve(c, c.req.param("page")));
  routes.open("GET /docs/guide/file/{file}", async (c) => {
    const name = c.req.param("file");
    if (!FILES.includes(name)) return c.notFound();
    const text = await readFile(new URL(`../../../${FILES_FOLDER}${name}`, import.meta.url), "utf8");
    return c.body(text, 200, { "content-type": "text/plain; charset=utf-8" });
  });
  return routes.hono;
}

/** Every page as HTML, by name. */
async function pagesOf(guide: Guide): Promise<ReadonlyMap<string, string>> {
  // Imported lazily, so that only readers of the guide pay for it.
  const { renderMarkdown } = await import("./guide-markdown.ts");
  const all = [guide.first, ...guide.groups.flatMap(({ files }) => files)];
  const pages = new Map(all.map((file) => [file.path, { href: addressOf(file), title: file.title }]));
  const shownAt = (path: string) => {
    const name = path.startsWith(FILES_FOLDER) ? path.slice(FILES_FOLDER.length) : "";
    const file = FILES.includes(name) ? { href: `/docs/guide/file/${name}`, title: name } : null;
    return pages.get(path) ?? file;
  };
  return new Map(
    all.map((file) => [file.name, guidePage(guide, file, renderMarkdown(file.text, { path: file.path, shownAt }))]),
  );
}
