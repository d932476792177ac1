// /broadcast: the page for broadcasting from a browser. Its sources are in ts/broadcast; scripts/build.mjs builds the
// files served here.
import { readFile } from "node:fs/promises";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { html, raw } from "hono/html";
import type { Config } from "../../config.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { type IngestPorts, ingestAt } from "../request/ingest.ts";
import { pageFiles } from "../request/page-files.ts";
import { baseUrlOf } from "../request/request.ts";

/** The built files, both for the sources (`ts/http`) and for the build (`dist/http`). */
const FOLDER = new URL("../../../dist/broadcast/", import.meta.url);
/** The camera is allowed for this page only, not for frames in it. */
const PERMISSIONS =
  "camera=(self), microphone=(self), display-capture=(self), screen-wake-lock=(self), geolocation=(), usb=()";

/** Headers that a 304 must carry as well: browsers replace the stored ones with them. */
const PAGE_HEADERS = ["content-security-policy", "permissions-policy", "cross-origin-opener-policy", "x-frame-options"];

export const BROADCAST_ROUTES = {
  "GET /broadcast": {
    tag: "Documents",
    summary: "A page to broadcast from",
    description:
      "Camera, microphone or screen, by WHIP. `/broadcast#token=<web token>` is a broadcaster's link; without a token " +
      "the page asks for stream name and address. The part after `#` is never sent to the server.",
    answer: null,
  },
  "GET /broadcast/{file}": {
    tag: "Documents",
    summary: "Files of the broadcast page",
    description: "File names change with their content.",
    answer: null,
    answerType: "text/javascript",
    errors: [404],
  },
} satisfies Declarations;

export function broadcastRoutes(
  deps: RouteDeps & {
    readonly config: Pick<Config, "http" | "ingest">;
    readonly ingestPorts: () => IngestPorts;
  },
): Routes["hono"] {
  const { config, ingestPorts } = deps;
  const routes = newRoutes(deps, BROADCAST_ROUTES);
  /** Read at the first request. */
  let page: Promise<string> | null = null;
  const files = pageFiles(FOLDER);

  routes.hono.use("/broadcast", etag({ retainedHeaders: [...RETAINED_304_HEADERS, ...PAGE_HEADERS] }));
  routes.open("GET /broadcast", async (c) => {
    const base = baseUrlOf(c, config);
    page ??= readFile(new URL("page.html", FOLDER), "utf8");
    page.catch(() => (page = null)); // a page that is not built yet is looked for again
    const [before = "", after = ""] = (await page).split("%INGEST%");
    c.header("content-security-policy", policy(config.http.publicUrl));
    c.header("permissions-policy", PERMISSIONS);
    c.header("cross-origin-opener-policy", "same-origin");
    c.header("x-frame-options", "DENY");
    c.header("cache-control", "no-cache");
    return c.html(html`${raw(before)}${ingestAt(base, config, ingestPorts()).rtmpUrl}${raw(after)}`);
  });

  routes.open("GET /broadcast/{file}", async (c) => await files(c, c.req.param("file")));

  return routes.hono;
}

/** Nothing is loaded from elsewhere, no markup is written from strings, no other page may frame this one. `publicUrl`:
 *  WHIP session URLs point there, even when the page was opened under another address. */
function policy(publicUrl: string | null): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self'${publicUrl === null ? "" : ` ${new URL(publicUrl).origin}`}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}
