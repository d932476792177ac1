// /sdk: the browser client's bundles, for pages of any origin. Each has a stable URL, revalidated after a few minutes,
// and a URL with its hash, cached for ever; `manifest.json` names both.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { takesGzip } from "../request/gzip.ts";

/** Output folder of the build; the same from the sources and from the built gateway. */
const FOLDER = join(import.meta.dirname, "..", "..", "..", "dist", "sdk");
/** How long a browser uses a stable URL without revalidation, seconds. */
const STABLE_CACHE_S = 300;
/** A year, as long as a cache lifetime should be, seconds. */
const HASHED_CACHE_S = 31_536_000;
/** Length of the hash in a name, hexadecimal digits. */
const HASH_DIGITS = 16;

interface Bundle {
  /** `webcaster-0123456789abcdef.js` */
  readonly hashedName: string;
  readonly etag: string;
  /** For `<script integrity>`. */
  readonly integrity: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
}

const Manifest = z.object({
  version: z.string().openapi({ description: "Version of the package", example: "0.1.0" }),
  files: z.record(
    z.string(),
    z.object({
      url: z.string().openapi({ description: "Its permanent address", example: "/sdk/webcaster-0123456789abcdef.js" }),
      integrity: z.string().openapi({ description: "Value of the `integrity` attribute", example: "sha384-…" }),
    }),
  ),
});

export const SDK_ROUTES = {
  "GET /sdk/manifest.json": {
    tag: "Documents",
    summary: "Permanent addresses of the browser client",
    description:
      "One entry per bundle. A page that uses an address with its integrity value loads exactly that version.",
    answer: Manifest,
  },
  "GET /sdk/{file}": {
    tag: "Documents",
    summary: "The browser client",
    description:
      "`webcaster.mjs` is a module, `webcaster.js` a script that defines `HeadgateWebcaster`. The name with a hash, as " +
      "manifest.json lists it, is permanent.",
    answer: null,
    answerType: "text/javascript",
    redirect: "The hash is of an older release: redirects to the stable address",
    errors: [404],
  },
} satisfies Declarations;

export function sdkRoutes(deps: RouteDeps & { readonly version: string; readonly sdkFolder?: string }): Routes["hono"] {
  const routes = newRoutes(deps, SDK_ROUTES);
  const folder = deps.sdkFolder ?? FOLDER;
  let reading: Promise<ReadonlyMap<string, Bundle>> | null = null;
  /** Read at the first request; a folder that cannot be read is tried again. */
  const bundles = () =>
    (reading ??= read(folder).catch((error: unknown) => {
      reading = null;
      throw error;
    }));

  routes.hono.use("/sdk/*", async (c, next) => {
    await next();
    c.res.headers.set("access-control-allow-origin", "*");
    c.res.headers.set("cross-origin-resource-policy", "cross-origin");
  });

  routes.open("GET /sdk/manifest.json", async (c) => {
    const files = [...(await bundles())].map(([name, { hashedName, integrity }]) => [
      name,
      { url: `/sdk/${hashedName}`, integrity },
    ]);
    c.header("cache-control", "no-cache");
    return c.json({ version: deps.version, files: Object.fromEntries(files) });
  });

  routes.open("GET /sdk/{file}", async (c) => {
    const file = c.req.param("file");
    const known = await bundles();
    const stable = known.get(file);
    if (stable !== undefined) return send(c, stable, `public, max-age=${STABLE_CACHE_S}`);
    const { base, extension } = /^(?<base>[\w.]+)-[0-9a-f]{16}(?<extension>\.m?js)$/.exec(file)?.groups ?? {};
    const name = `${base}${extension}`;
    const hashed = known.get(name);
    if (hashed === undefined) return c.notFound();
    if (hashed.hashedName === file) return send(c, hashed, `public, max-age=${HASHED_CACHE_S}, immutable`);
    return c.redirect(`/sdk/${name}`, 302);
  });

  return routes.hono;
}

function send(c: Context, { etag, plain, zipped }: Bundle, cacheControl: string): Response {
  c.header("cache-control", cacheControl);
  c.header("etag", etag);
  c.header("vary", "accept-encoding");
  // RFC 9110 13.1.2: weak comparison.
  const known = c.req.header("if-none-match")?.split(",") ?? [];
  if (known.some((tag) => tag.trim() === etag || tag.trim() === "*")) return c.body(null, 304);
  const type = { "content-type": "text/javascript; charset=utf-8" };
  return takesGzip(c) ? c.body(zipped, 200, { ...type, "content-encoding": "gzip" }) : c.body(plain, 200, type);
}

async function read(folder: string): Promise<ReadonlyMap<string, Bundle>> {
  const names = (await readdir(folder)).filter((name) => /\.m?js$/.test(name)).sort();
  const read = names.map(async (name): Promise<[string, Bundle]> => {
    const plain = new Uint8Array(await readFile(join(folder, name)));
    const hash = createHash("sha256").update(plain).digest("hex").slice(0, HASH_DIGITS);
    return [
      name,
      {
        hashedName: name.replace(/(\.m?js)$/, `-${hash}$1`),
        // One for both content codings, so it is weak.
        etag: `W/"${hash}"`,
        integrity: `sha384-${createHash("sha384").update(plain).digest("base64")}`,
        plain,
        zipped: new Uint8Array(await promisify(gzip)(plain, { level: 9 })),
      },
    ];
  });
  return new Map(await Promise.all(read));
}
