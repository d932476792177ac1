// What every resource reads from a request: the JSON body, the API key, the address we were called at.
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context } from "hono";
import type { Config } from "./config.ts";
import { MalformedJson, WrongDataType } from "./errors.ts";
import type { Credentials } from "./organisation/callers.ts";

/** Largest body that is read, bytes. */
export const BODY_LIMIT_BYTES = 65_536;

/** The body as a JSON object whatever its content type says (M5); no body is an empty object. */
export async function readJson(c: Context): Promise<Readonly<Record<string, unknown>>> {
  const text = await c.req.text();
  if (text.trim() === "") return {};
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new MalformedJson("the body is no JSON", { cause });
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new WrongDataType("body", "object");
  return body as Record<string, unknown>;
}

/** The API key as it was sent, or null. */
export function apiKeyOf(c: Context): string | null {
  return c.req.header("x-service-apikey") ?? null;
}

/** What the request shows of its caller. */
export function credentialsOf(c: Context): Credentials {
  return { apiKey: apiKeyOf(c) };
}

/** Scheme, host and port that the caller reaches us at, without a trailing slash. */
export function baseUrlOf(c: Context, config: Pick<Config, "http">): string {
  return config.http.publicUrl ?? new URL(c.req.url).origin;
}

/** IP address of the peer (W5); an IPv4 peer of a dual-stack port is told as IPv4. */
export function peerAddressOf(c: Context): string {
  const { address } = getConnInfo(c).remote;
  return address?.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "") ?? "";
}
