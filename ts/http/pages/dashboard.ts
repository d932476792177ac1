// /dashboard: one document for all pages below it; its script chooses the page by the path. Its sources are in
// ts/dashboard; scripts/build.mjs builds the files served here. It contains no data: that comes from the API.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Context } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { type Declarations, newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { ICON_SVG } from "../request/icon.ts";
import { pageFiles } from "../request/page-files.ts";

/** The built files, both for the sources (`ts/http`) and for the build (`dist/http`). */
const FOLDER = new URL("../../../dist/dashboard/", import.meta.url);
/** The page may use only the clipboard. */
const PERMISSIONS =
  "camera=(), microphone=(), display-capture=(), geolocation=(), usb=(), payment=(), clipboard-write=(self)";
/** A day: its address does not change with it. */
const ICON_CACHE = "public, max-age=86400";
/** Headers that a 304 must carry as well: browsers replace the stored ones with them. */
const PAGE_HEADERS = ["content-security-policy", "permissions-policy", "cross-origin-opener-policy", "x-frame-options"];

interface Page {
  readonly html: string;
  readonly policy: string;
}

export const DASHBOARD_ROUTES = {
  "GET /dashboard": {
    tag: "Documents",
    summary: "The dashboard",
    description:
      "People sign in and see what their role allows: streams, webhook, deliveries, usage, keys, people. Every address " +
      "below it, such as `/dashboard/streams`, returns the same document. It contains no data: its script calls this API " +
      "with the session of `POST /login`.",
    answer: null,
  },
  "GET /dashboard/file/{file}": {
    tag: "Documents",
    summary: "Files of the dashboard",
    description: "File names change with their content.",
    answer: null,
    answerType: "text/javascript",
    errors: [404],
  },
} satisfies Declarations;

export function dashboardRoutes(deps: RouteDeps): Routes["hono"] {
  const routes = newRoutes(deps, DASHBOARD_ROUTES);
  const files = pageFiles(FOLDER);
  /** Read at the first request. */
  let reading: Promise<Page> | null = null;
  const serve = async (c: Context) => {
    reading ??= readFile(new URL("page.html", FOLDER), "utf8").then((html) => ({ html, policy: policyOf(html) }));
    reading.catch(() => (reading = null)); // a page that is not built yet is looked for again
    const { html, policy } = await reading;
    c.header("content-security-policy", policy);
    c.header("permissions-policy", PERMISSIONS);
    c.header("cross-origin-opener-policy", "same-origin");
    c.header("x-frame-options", "DENY");
    c.header("cache-control", "no-cache");
    return c.html(html);
  };

  // For people who open this Headgate in a browser, and what browsers request by themselves; no program requests them.
  routes.hono.get("/", (c) => c.redirect("/dashboard/", 302));
  routes.hono.get("/favicon.ico", (c) =>
    c.body(ICON_SVG, 200, { "content-type": "image/svg+xml", "cache-control": ICON_CACHE }),
  );

  const tagged = etag({ retainedHeaders: [...RETAINED_304_HEADERS, ...PAGE_HEADERS] });
  routes.hono.use("/dashboard", tagged);
  routes.hono.use("/dashboard/*", (c, next) => (isFile(c.req.path) ? next() : tagged(c, next)));
  routes.open("GET /dashboard", serve);

  // Registered before the files: the log names a request by the last pattern that it matches.
  routes.hono.get("/dashboard/*", (c, next) => (isFile(c.req.path) ? next() : serve(c)));
  routes.open("GET /dashboard/file/{file}", async (c) => await files(c, c.req.param("file")));

  return routes.hono;
}

const isFile = (path: string) => path.startsWith("/dashboard/file/");

/** Nothing is loaded from elsewhere, no markup is written from strings, no other page may frame this one. The one
 *  inline script, which sets the colour scheme before the first paint, is allowed by its hash. `blob:`: media that a
 *  script passes to <video>. */
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
