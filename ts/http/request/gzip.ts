// Whether a browser accepts gzip.
import type { Context } from "hono";

/** A coding that is not acceptable has the weight 0 (RFC 9110 12.4.2). */
export function takesGzip(c: Context): boolean {
  return /(^|[\s,])gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(c.req.header("accept-encoding") ?? "");
}
