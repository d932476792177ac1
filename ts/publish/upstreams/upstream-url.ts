// Validates the URL of a customer's upstream, and masks it for display. Which addresses it may lead to is decided in
// address-guard.ts.
import { withoutBrackets } from "../../network.ts";
import { percentDecoded } from "../../text/percent.ts";
import { malformedUrl, refusalOfHost } from "../addresses/address-guard.ts";
import type { Resolve } from "../addresses/resolver.ts";

const UPSTREAM = /^(rtmps?):\/\/(?:([^/@]*)@)?(\[[\da-f:.]+\]|[^/@:[\]?]+)(?::(\d{1,5}))?\/(.+)$/i;

/** The parts of `rtmp[s]://[user[:password]@]host[:port]/app[?arguments]/name[?arguments]`, as the media core parses it;
 *  `app` and `key` without arguments. Null when it is something else. */
function parse(url: string) {
  const [, scheme, userInfo = "", host = "", port, path] = UPSTREAM.exec(url) ?? [];
  if (scheme === undefined || path === undefined) return null;
  // An app of one segment may be followed by its arguments, and a longer one by `%3F` and its encoded arguments.
  const [, app, key] =
    /^([^/?]+)\?[^?]*\/([^/?]+)(?:\?.*)?$/.exec(path) ?? /^([^?]+)\/([^/?]+)(?:\?.*)?$/.exec(path) ?? [];
  const shown = app?.replace(/%3f.*$/i, "") ?? "";
  return shown === "" || key === undefined ? null : { scheme, userInfo, host, port, app: shown, key };
}

/** Validates a customer's upstream before it is saved as W21 does a webhook, except for the scheme and credentials,
 *  which RTMP servers require. A name that does not resolve is saved: it is checked again at every connection. `dev`
 *  allows every address. Never throws. */
export async function checkUpstreamUrl(
  url: string,
  options: { readonly dev: boolean; readonly owner?: string; readonly resolve?: Resolve },
): Promise<null | { readonly reason: string }> {
  const malformed = malformedUrl(url);
  if (malformed !== null) return malformed;
  if (url.includes("#")) return { reason: "must not contain a fragment" };
  const parts = parse(url);
  if (parts === null)
    return { reason: "must be rtmp:// or rtmps:// with host, app and, after a slash, the stream name" };
  const { scheme, userInfo, host, port } = parts;
  if (scheme !== scheme.toLowerCase()) return { reason: "must have a lower-case scheme" };
  if (port !== undefined && (Number(port) === 0 || Number(port) > 65_535))
    return { reason: "must use a port up to 65535" };
  if (percentDecoded(userInfo) === null) return { reason: "must have its credentials percent-encoded as UTF-8" };
  return options.dev ? null : await refusalOfHost(withoutBrackets(host), options);
}

/** An upstream's URL without stream key, arguments and credentials. */
export function shownUpstream(url: string): string {
  const { scheme = "rtmp", host = "", port, app = "" } = parse(url) ?? {};
  return `${scheme}://${host}:${port ?? (scheme === "rtmps" ? 443 : 1935)}/${app}`;
}

/** Shorter stream keys are masked completely, characters. */
const MASKED_KEY_LENGTH = 8;

/** The first characters of an upstream's stream key: enough to tell upstreams of one host and app apart, never enough
 *  to use one. */
export function maskedKey(url: string): string {
  return maskedText(parse(url)?.key ?? "");
}

/** The same for a key on its own. */
export function maskedText(key: string): string {
  const characters = [...key];
  return characters.length < MASKED_KEY_LENGTH ? "…" : `${characters.slice(0, 2).join("")}…`;
}
