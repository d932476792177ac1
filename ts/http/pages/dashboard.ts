// /dashboard: one document for every page below it, which its script tells apart by the address. Its sources are in
// ts/dashboard; what is served is what scripts/build.mjs made of them. It holds nothing of anybody: that comes by the API.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Context } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { pageFiles } from "../request/page-files.ts";

/** The built files, for sources (`ts/http`) and for what is built of them (`dist/http`) alike. */
const FOLDER = new URL("../../../dist/dashboard/", import.meta.url);
/** The page asks for nothing but the clipboard. */
const PERMISSIONS =
  "camera=(), microphone=(), display-capture=(), geolocation=(), usb=(), payment=(), clipboard-write=(self)";
/** What must come with a 304 as well: browsers put it in the place of what they kept. */
const PAGE_HEADERS = ["content-security-policy", "permissions-policy", "cross-origin-opener-policy", "x-frame-options"];

interface Page {
  readonly html: string;
  readonly policy: string;
}

export function dashboardRoutes(deps: RouteDeps): Routes["hono"] {
  const routes = newRoutes(deps);
  const files = pageFiles(FOLDER);
  /** Read when first asked for. */
  let reading: Promise<Page> | null = null;
  const serve = async (c: Context) => {
    reading ??= readFile(new URL("page.html", FOLDER), "utf8").then((html) => ({ html, policy: policyOf(html) }));
    reading.catch(() => (reading = null)); // one that is not built yet is looked for again
    const { html, policy } = await reading;
    c.header("content-security-policy", policy);
    c.header("permissions-policy", PERMISSIONS);
    c.header("cross-origin-opener-policy", "same-origin");
    c.header("x-frame-options", "DENY");
    c.header("cache-control", "no-cache");
    return c.html(html);
  };

  // Whoever opens this Headgate in a browser; no program asks for it.
  routes.hono.get("/", (c) => c.redirect("/dashboard/", 302));

  const tagged = etag({ retainedHeaders: [...RETAINED_304_HEADERS, ...PAGE_HEADERS] });
  routes.hono.use("/dashboard", tagged);
  routes.hono.use("/dashboard/*", (c, next) => (isFile(c.req.path) ? next() : tagged(c, next)));
  routes.open(
    "GET /dashboard",
    {
      tag: "Documents",
      summary: "The dashboard",
      description:
        "People sign in and see what their role allows: streams, webhook, deliveries, usage, keys, people. Every address " +
        "below it, such as `/dashboard/streams`, returns the same document. It contains no data: its script calls this API " +
        "with the session of `POST /login`.",
      answer: null,
    },
    serve,
  );

  // Before the files: the log names a request by the last pattern that it matches.
  routes.hono.get("/dashboard/*", (c, next) => (isFile(c.req.path) ? next() : serve(c)));
  routes.open(
    "GET /dashboard/file/{file}",
    {
      tag: "Documents",
      summary: "Files of the dashboard",
      description: "File names change with their content.",
      answer: null,
      answerType: "text/javascript",
      errors: [404],
    },
    async (c) => await files(c, c.req.param("file")),
  );

  return routes.hono;
}

const isFile = (path: string) => path.startsWith("/dashboard/file/");

/** Nothing comes from elsewhere, nothing is written as markup, nobody frames the page. The one inline script, which sets
 *  the colour scheme before anything is painted, is named by its hash. `blob:`: media that a script hands to <video>. */
function policyOf(html: string): string {
  const inline = [...html.matchAll(/<script>(.*?)<\/script>/gs)].map(([, script = ""]) => {
    return ` 'sha256-${createHash("sha256").update(script).digest("base64")}'`;
  });
  return [
    "default-src 'none'",
    `script-src 'self'${inline.join("")}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
