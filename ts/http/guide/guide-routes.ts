// /docs/guide: the guide of this version, from the files that ship with it, and its search. It needs no internet access.
import { readFile } from "node:fs/promises";
import type { Context } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { type Guide, readGuide } from "./guide-files.ts";
import { addressOf, GUIDE_POLICY, guidePage, SEARCH_LIMIT } from "./guide-page.ts";
import { foundHtml, sectionsOf } from "./guide-search.ts";

/** Files from docs/monitoring for operators to download. */
const FILES = ["alerts.yaml", "grafana.json"];
const FILES_FOLDER = "docs/monitoring/";
/** The drawings that scripts/guide-diagrams.mjs made; the same for the sources and for the build. */
const DIAGRAMS = new URL("../../../dist/guide/diagrams.json", import.meta.url);

export const GUIDE_ROUTES = {
  "GET /docs/guide": {
    tag: "Documents",
    summary: "The guide",
    description:
      "First broadcast, webhook, security, production, troubleshooting. Works without internet access and scripts.",
    query: z.object({
      q: z
        .string()
        .max(SEARCH_LIMIT)
        .optional()
        .meta({ description: "Words to search for, in place of the first page." }),
    }),
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
  let rendering: Promise<RenderedGuide> | null = null;

  async function serve(c: Context, choose: (guide: RenderedGuide) => string | undefined) {
    rendering ??= readGuide().then(render);
    rendering.catch(() => (rendering = null));
    const page = choose(await rendering);
    if (page === undefined) return c.notFound();
    c.header("content-security-policy", GUIDE_POLICY);
    c.header("x-frame-options", "DENY");
    c.header("cache-control", "no-cache");
    return c.html(page);
  }

  const retainedHeaders = [...RETAINED_304_HEADERS, "content-security-policy", "x-frame-options"];
  routes.hono.use("/docs/guide", etag({ retainedHeaders }));
  routes.hono.use("/docs/guide/*", etag({ retainedHeaders }));
  routes.open("GET /docs/guide", (c, { query: { q = "" } }) =>
    serve(c, ({ pages, found }) => (q.trim() === "" ? pages.get("") : found(q.trim()))),
  );
  routes.open("GET /docs/guide/{page}", (c) => serve(c, ({ pages }) => pages.get(c.req.param("page"))));
  routes.open("GET /docs/guide/file/{file}", async (c) => {
    const name = c.req.param("file");
    if (!FILES.includes(name)) return c.notFound();
    const text = await readFile(new URL(`../../../${FILES_FOLDER}${name}`, import.meta.url), "utf8");
    return c.body(text, 200, { "content-type": "text/plain; charset=utf-8" });
  });
  return routes.hono;
}

interface RenderedGuide {
  /** Every page as HTML, by name. */
  readonly pages: ReadonlyMap<string, string>;
  /** The page of what was found. */
  readonly found: (searched: string) => string;
}

async function render(guide: Guide): Promise<RenderedGuide> {
  // Imported lazily, so that only readers of the guide pay for it.
  const { renderMarkdown } = await import("./guide-markdown.ts");
  const diagrams = JSON.parse(await readFile(DIAGRAMS, "utf8")) as Readonly<Record<string, string>>;
  const all = [guide.first, ...guide.groups.flatMap(({ files }) => files)];
  const shown = new Map(all.map((file) => [file.path, { href: addressOf(file), title: file.title }]));
  const shownAt = (path: string) => {
    const name = path.startsWith(FILES_FOLDER) ? path.slice(FILES_FOLDER.length) : "";
    const file = FILES.includes(name) ? { href: `/docs/guide/file/${name}`, title: name } : null;
    return shown.get(path) ?? file;
  };
  const pages = all.map((file) => {
    const rendered = renderMarkdown(file.text, { path: file.path, shownAt, diagrams });
    return [file.name, guidePage(guide, file, rendered)] as const;
  });
  const sections = sectionsOf(guide);
  return {
    pages: new Map(pages),
    found: (searched) => guidePage(guide, null, { html: foundHtml(sections, searched), sections: [] }, searched),
  };
}
