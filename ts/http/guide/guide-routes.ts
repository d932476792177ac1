// /docs/guide: the guide of this version, from the files that ship with it, and its search. It needs no internet access.
import { readFile } from "node:fs/promises";
import type { Context } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { GUIDE_POLICY, guidePage, SEARCH_LIMIT } from "./guide-page.ts";
import { type Guide, pagesOf, readGuide } from "./guide-pages.ts";
import { foundHtml } from "./guide-search.ts";

/** Files from docs/monitoring for operators to download. */
const FILES = ["alerts.yaml", "grafana.json"];

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
  /** Read at the first request: they change only with a release. */
  let reading: Promise<RenderedGuide> | null = null;

  async function serve(c: Context, choose: (guide: RenderedGuide) => string | undefined) {
    reading ??= readGuide().then(pagesWith);
    reading.catch(() => (reading = null));
    const page = choose(await reading);
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
    const text = await readFile(new URL(`../../../docs/monitoring/${name}`, import.meta.url), "utf8");
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

function pagesWith(guide: Guide): RenderedGuide {
  const all = pagesOf(guide);
  const parts = all.flatMap((page) => page.parts);
  return {
    pages: new Map(all.map((page) => [page.name, guidePage(guide, page)])),
    found: (searched) => guidePage(guide, { searched, html: foundHtml(parts, searched) }),
  };
}
