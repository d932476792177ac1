// What every resource reads from a request: the JSON body, the API key, the address we were called at.
import { BlockList, isIP } from "node:net";
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context } from "hono";
import type { Config } from "./config.ts";
import { MalformedJson, WrongDataType } from "./errors.ts";

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

/** Scheme, host and port that the caller reaches us at, without a trailing slash. */
export function baseUrlOf(c: Context, config: Pick<Config, "http">): string {
  return config.http.publicUrl ?? new URL(c.req.url).origin;
}

/** IP address of the peer; an IPv4 peer of a dual-stack port is told as IPv4. */
export function peerAddressOf(c: Context): string {
  return withoutMapping(getConnInfo(c).remote.address ?? "");
}

/** Networks whose word about the client counts: `10.0.0.0/8`, `2001:db8::1`. */
export function trustedNetworks(networks: readonly string[]): BlockList {
  const trusted = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  return trusted;
}

/** IP address of the client (W5): the peer, or behind trusted proxies the last hop that is none of them. What a client
 *  writes into X-Forwarded-For itself stands before that and is not believed. */
export function clientAddressOf(c: Context, trusted: BlockList): string {
  let client = peerAddressOf(c);
  const hops = (c.req.header("x-forwarded-for") ?? "").split(",").reverse();
  for (const hop of hops) {
    if (isIP(client) === 0 || !trusted.check(client, isIP(client) === 6 ? "ipv6" : "ipv4")) return client;
    const address = withoutMapping(withoutPort(hop.trim()));
    if (isIP(address) === 0) return client;
    client = address;
  }
  return client;
}

/** `1.2.3.4:5`, `[2001:db8::1]:5` and `[2001:db8::1]` → the address. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^([\d.]+):\d+$/, "$1");
}

function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
}
