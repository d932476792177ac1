// Files of a page, as scripts/build.mjs built them into a folder of dist: their names change with their content, so
// browsers may cache them indefinitely.
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { takesGzip } from "./gzip.ts";

/** A year, seconds. */
const CACHE = "public, max-age=31536000, immutable";
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
type Bytes = Uint8Array<ArrayBuffer>;

/** Responds with the file of that name, or 404. `folder`: a URL with a slash at its end. */
export type PageFiles = (c: Context, name: string) => Promise<Response>;

export function pageFiles(folder: URL): PageFiles {
  /** Each is read at its first request. */
  const files = new Map<string, Promise<readonly [plain: Bytes, zipped: Bytes]>>();
  return async (c, name) => {
    const type = /^[a-z][a-z-]*-[0-9a-f]{12}\.(js|css|svg)$/.exec(name)?.[1];
    if (type === undefined) return c.notFound();
    let file = files.get(name);
    if (file === undefined) {
      file = readFile(new URL(name, folder)).then(async (bytes) => [bytes, await promisify(gzip)(bytes)]);
      files.set(name, file);
      file.catch(() => files.delete(name)); // requests for unknown names must not fill the memory
    }
    const read = await file.catch(() => null);
    if (read === null) return c.notFound();
    const [plain, zipped] = read;
    c.header("cache-control", CACHE);
    c.header("content-type", TYPES[type]);
    c.header("vary", "accept-encoding");
    if (!takesGzip(c)) return c.body(plain);
    c.header("content-encoding", "gzip");
    return c.body(zipped);
  };
}
