// Where a WHIP publish asks to be delivered: to ourselves, or to a host the operator allows (P2). Resolves nothing.
import { withoutBrackets } from "./address-guard.ts";

const RTMP_PORT = 1935;

export type StreamUrl =
  | { readonly kind: "ourselves" }
  | { readonly kind: "foreign"; readonly host: string; readonly port: number }
  | { readonly kind: "refused" };

export interface StreamUrlRules {
  /** Our own ingest hosts, lower case, without brackets. */
  readonly ownHosts: readonly string[];
  readonly rtmpPort: number;
  /** Foreign `host[:port]` that are allowed. */
  readonly allow: readonly string[];
}

/** Judges `stream_url` for the stream `name`; our hosts also count as `<name>.host`. */
export function readStreamUrl(text: string, name: string, rules: StreamUrlRules): StreamUrl {
  const refused: StreamUrl = { kind: "refused" };
  const url = parse(text);
  if (url === null || !/^\/live\/?$/.test(url.pathname)) return refused;
  const host = withoutBrackets(url.hostname).toLowerCase();
  const port = url.port === "" ? RTMP_PORT : Number(url.port);
  const prefix = `${name.toLowerCase()}.`;
  const base = host.startsWith(prefix) ? host.slice(prefix.length) : host;
  if (port === rules.rtmpPort && (rules.ownHosts.includes(host) || rules.ownHosts.includes(base))) {
    return { kind: "ourselves" };
  }
  const isAllowed = rules.allow.some((entry) => {
    const { host: allowed, port: allowedPort } = splitHost(entry);
    return allowed === host && allowedPort === port;
  });
  return isAllowed ? { kind: "foreign", host: url.hostname, port } : refused;
}

/** The complete URL of a push to a foreign host: name and arguments verbatim. */
export function foreignUrl(
  target: { readonly host: string; readonly port: number },
  name: string,
  customArguments: string | null,
): string {
  const query = customArguments === null ? "" : `?${customArguments}`;
  return `rtmp://${target.host}:${target.port}/live/${name}${query}`;
}

/** Null for what is no plain RTMP URL: no user, no query, nothing escaped, nothing that the WHATWG parser would repair
 *  (dot segments, control characters). */
function parse(text: string): URL | null {
  if (!/^rtmp:\/\/[\w.:[\]-]+\/live\/?$/i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function splitHost(entry: string): { host: string; port: number } {
  const [, host = entry, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  return { host: withoutBrackets(host).toLowerCase(), port: port === undefined ? RTMP_PORT : Number(port) };
}
