// Where a WHIP publish asks to be delivered: to this service, or to a host the operator allows (P2). Resolves nothing.
import { withoutBrackets } from "../../network.ts";

/** Ports of URLs that name none. */
const DEFAULT_PORTS = { rtmp: 1935, rtmps: 443 } as const;

type Scheme = keyof typeof DEFAULT_PORTS;

export type StreamUrl =
  | { readonly kind: "ourselves" }
  | { readonly kind: "other_host"; readonly scheme: Scheme; readonly host: string; readonly port: number }
  | { readonly kind: "refused" };

export interface StreamUrlRules {
  /** Our own ingest hosts, lower case, without brackets. */
  readonly ownHosts: readonly string[];
  /** null if only RTMPS is served. */
  readonly rtmpPort: number | null;
  /** Where this service accepts RTMP over TLS; null or absent when it does not. */
  readonly rtmpsPort?: number | null;
  /** `host:port` of RTMP on other nodes: a request passed on or redirected by one of them names that node's own. */
  readonly otherNodes?: readonly string[];
  /** Other `host[:port]` that are allowed. */
  readonly allow: readonly string[];
}

/** Validates `stream_url` for the stream `name`; `<name>.host` also counts as one of our hosts. */
export function readStreamUrl(text: string, name: string, rules: StreamUrlRules): StreamUrl {
  const refused: StreamUrl = { kind: "refused" };
  const url = parse(text);
  if (url === null || !/^\/live\/?$/.test(url.pathname)) return refused;
  const scheme: Scheme = url.protocol.toLowerCase() === "rtmps:" ? "rtmps" : "rtmp";
  const host = withoutBrackets(url.hostname).toLowerCase();
  const port = url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port);
  const prefix = `${name.toLowerCase()}.`;
  const base = host.startsWith(prefix) ? host.slice(prefix.length) : host;
  const ownPort = scheme === "rtmps" ? (rules.rtmpsPort ?? null) : rules.rtmpPort;
  if (port === ownPort && (rules.ownHosts.includes(host) || rules.ownHosts.includes(base))) {
    return { kind: "ourselves" };
  }
  if (scheme === "rtmp" && rules.otherNodes?.includes(`${url.hostname}:${port}`)) return { kind: "ourselves" };
  const isAllowed = rules.allow.some((entry) => {
    const { host: allowed, port: allowedPort } = splitHost(entry, scheme);
    return allowed === host && allowedPort === port;
  });
  return isAllowed ? { kind: "other_host", scheme, host: url.hostname, port } : refused;
}

/** The complete URL of a push to another host: name and arguments verbatim. */
export function otherHostUrl(
  target: { readonly scheme: Scheme; readonly host: string; readonly port: number },
  name: string,
  customArguments: string | null,
): string {
  const query = customArguments === null ? "" : `?${customArguments}`;
  return `${target.scheme}://${target.host}:${target.port}/live/${name}${query}`;
}

/** Null unless it is a plain RTMP URL: no user, no query, nothing escaped, nothing that the WHATWG parser would repair
 *  (dot segments, control characters). */
function parse(text: string): URL | null {
  if (!/^rtmps?:\/\/[\w.:[\]-]+\/live\/?$/i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function splitHost(entry: string, scheme: Scheme): { host: string; port: number } {
  const [, host = entry, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  return { host: withoutBrackets(host).toLowerCase(), port: port === undefined ? DEFAULT_PORTS[scheme] : Number(port) };
}
