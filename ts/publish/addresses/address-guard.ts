// The address guard (W21): keeps URLs that customers give from reaching internal addresses. Applied when a webhook URL
// is saved and again at every connection, because a name may resolve differently a minute later. It is not a firewall
// for upstreams that the operator configures.
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { buildConnector } from "undici/index.js";
import { inTime } from "../../in-time.ts";
import { withoutBrackets } from "../../network.ts";
import { refusalOfAddress } from "./address-table.ts";
import { createResolver, type Resolve } from "./resolver.ts";

/** Longest webhook URL in bytes (W21). */
export const WEBHOOK_URL_LIMIT_BYTES = 2048;
/** How long the name of an upstream may take to resolve, ms. */
const RESOLVE_LIMIT_MS = 3_000;
/** How long saving a webhook waits for its name to resolve; a name that has not resolved by then is saved
 *  unresolved. */
const SAVE_RESOLVE_LIMIT_MS = 2_000;

/** One per process: all organisations share its cache and its queue of look-ups. */
export const resolveBySystem = createResolver();

/** Fails a connection attempt that the guard refuses; no byte has been written to the peer at that point. */
export class AddressRefused extends Error {
  readonly code = "address_refused";
  constructor(reason: string) {
    super(`address refused: ${reason}`);
    this.name = "AddressRefused";
  }
}

/** Validates a webhook URL before it is saved (W21): null when it may be saved, else a reason to show to the customer.
 *  A name that does not resolve is accepted. `dev` allows http and every address. `owner`: the organisation whose
 *  look-up limit applies. Never throws. */
export async function checkWebhookUrl(
  url: string,
  options: { readonly dev: boolean; readonly owner?: string; readonly resolve?: Resolve },
): Promise<null | { readonly reason: string }> {
  const host = hostOfWebhook(url, options.dev);
  if (typeof host !== "string") return host;
  if (options.dev) return null;
  const refusal = await refusalOfHost(host, options);
  return refusal && { reason: `${refusal.reason} (${FOR_TESTS})` };
}

export type CheckWebhookUrl = typeof checkWebhookUrl;

/** For people who try Headgate on their own machine. */
const FOR_TESTS = "for tests, a service started with --dev takes local addresses and http";

/** Why a webhook or an upstream may not use this host, or null. A host that does not resolve is accepted: it is checked
 *  again at every connection. */
export async function refusalOfHost(
  host: string,
  { resolve = resolveBySystem, owner }: { readonly resolve?: Resolve; readonly owner?: string } = {},
): Promise<null | { readonly reason: string }> {
  const addresses = isIP(host) ? [host] : await resolved(SAVE_RESOLVE_LIMIT_MS, resolve(host, owner));
  for (const address of addresses) {
    const refusal = refusalOfAddress(address);
    if (refusal !== null) return { reason: `the address must be publicly reachable, but it is ${refusal}` };
  }
  return null;
}

/** Why a URL is malformed and must not be saved, or null. */
export function malformedUrl(url: string): null | { readonly reason: string } {
  if (Buffer.byteLength(url) > WEBHOOK_URL_LIMIT_BYTES) {
    return { reason: `must not be longer than ${WEBHOOK_URL_LIMIT_BYTES} bytes` };
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\x00-\x20\x7f\\]/.test(url)) return { reason: "must not contain spaces, control characters or backslashes" };
  return url.isWellFormed() ? null : { reason: "must be well-formed Unicode" };
}

function hostOfWebhook(url: string, dev: boolean): string | { readonly reason: string } {
  // The WHATWG parser would silently repair these, but the URL that is saved must be exactly the URL that is called.
  const malformed = malformedUrl(url);
  if (malformed !== null) return malformed;
  if (!URL.canParse(url)) return { reason: "must be a complete URL" };
  const parsed = new URL(url);
  if (parsed.protocol !== "https:" && !(dev && parsed.protocol === "http:")) {
    return { reason: parsed.protocol === "http:" ? `must be https (${FOR_TESTS})` : "must be https" };
  }
  if (!/^https?:\/\/[^/]/i.test(url)) return { reason: "must be a complete URL" };
  if (/^[^/]*\/\/[^/?#]*@/.test(url)) return { reason: "must not contain a user name or password" };
  if (url.includes("#")) return { reason: "must not contain a fragment" };
  if (parsed.port === "0") return { reason: "must not use port 0" };
  return withoutBrackets(parsed.hostname);
}

/** A `lookup` for sockets that returns only allowed addresses; with `dev`, every address. One refused address refuses
 *  the whole name: a name with both a public and a private address is an attack or a mistake. `owner`: the organisation
 *  whose look-up limit applies. */
export function guardedLookup({
  resolve = resolveBySystem,
  dev = false,
  owner,
}: {
  readonly resolve?: Resolve;
  readonly dev?: boolean;
  readonly owner?: string;
} = {}): LookupFunction {
  return (host, options, callback) => {
    resolve(host, owner).then(
      (addresses) => {
        const refusal = dev ? undefined : addresses.map(refusalOfAddress).find((reason) => reason !== null);
        const first = addresses[0];
        if (refusal !== undefined || first === undefined) {
          callback(new AddressRefused(refusal ?? "no address"), "", 0);
        } else if (options.all) {
          callback(
            null,
            addresses.map((address) => ({ address, family: isIP(address) })),
          );
        } else {
          callback(null, first, isIP(first));
        }
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
}

/** Wraps an undici connector that was built with `guardedLookup`: checks IP literals before connecting (sockets do not
 *  look them up), and the address of the connected peer before any byte of the request is sent. */
export function guardConnector(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    const host = withoutBrackets(options.hostname);
    const refusal = isIP(host) ? refusalOfAddress(host) : null;
    if (refusal !== null) {
      // The callback must not run inside the call: undici is still preparing its client.
      queueMicrotask(() => callback(new AddressRefused(refusal), null));
      return;
    }
    connect(options, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error !== null || socket === null) {
        callback(error ?? new AddressRefused("no socket"), null);
        return;
      }
      const connected = refusalOfConnected(socket);
      if (connected === null) {
        callback(null, socket);
        return;
      }
      socket.destroy();
      callback(new AddressRefused(connected), null);
    });
  };
}

/** Why the address at the other end of `socket` is refused, or null. */
function refusalOfConnected(socket: Socket): string | null {
  return socket.remoteAddress === undefined ? "already closed" : refusalOfAddress(socket.remoteAddress);
}

/** Addresses to dial for an upstream; empty when its name cannot be resolved, null when any of its addresses is refused.
 *  `exempt`: the operator configured this upstream, so every address is allowed (R4). Never throws. */
export async function resolveUpstream(
  host: string,
  options: { readonly exempt: boolean; readonly owner: string; readonly resolve?: Resolve },
): Promise<readonly string[] | null> {
  const plain = withoutBrackets(host);
  const { resolve = resolveBySystem, owner } = options;
  const addresses = isIP(plain) ? [plain] : await resolved(RESOLVE_LIMIT_MS, resolve(plain, owner));
  if (options.exempt) return addresses;
  return addresses.every((address) => refusalOfAddress(address) === null) ? addresses : null;
}

/** The addresses found within `limitMs`, else none. */
function resolved(limitMs: number, resolving: Promise<readonly string[]>): Promise<readonly string[]> {
  return inTime(
    limitMs,
    resolving.catch(() => []),
    [],
  );
}
