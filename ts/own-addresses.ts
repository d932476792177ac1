// The addresses of this service: those announced at the start, those of WebRTC candidates, and those that count as our
// own in a stream_url.
import { hostname, networkInterfaces } from "node:os";
import type { Config } from "./config.ts";
import type { Listening } from "./listen/http-port.ts";
import type { Media } from "./media.ts";
import { withBrackets, withoutBrackets } from "./network.ts";

/** The addresses of the running service, as in the line that says it is ready. */
export interface Addresses {
  readonly http: string;
  /** null if only RTMPS is served. */
  readonly rtmp: string | null;
  readonly rtmps: string | null;
  /** UDP addresses of the media workers. */
  readonly media: readonly string[];
  readonly metrics: string;
}

export function addressesOf(
  config: Config,
  media: Pick<Media, "rtmpPort" | "rtmpTlsPort" | "mediaPorts">,
  http: Pick<Listening, "port">,
  metrics: Pick<Listening, "port">,
): Addresses {
  const reach = (host: string, port: number) => `${nameOf(host)}:${port}`;
  const rtmpAt = (scheme: string, port: number | null) =>
    port === null ? null : `${scheme}://${reach(config.ingest.hosts[0] ?? config.rtmp.host, port)}/live`;
  return {
    http:
      config.http.publicUrl ?? `${config.http.tls === null ? "http" : "https"}://${reach(config.http.host, http.port)}`,
    rtmp: rtmpAt("rtmp", media.rtmpPort),
    rtmps: rtmpAt("rtmps", media.rtmpTlsPort),
    media: media.mediaPorts.map((port) => `${config.media.host}:${port}`),
    metrics: `http://${reach(config.metrics.host, metrics.port)}`,
  };
}

/** Address by which other nodes reach this one: as configured, else its first address and the port. A process beside
 *  another listens on a port other than the configured one, which then replaces the port of the address. */
export function nodeAddressOf({ node }: Config, { port }: Pick<Listening, "port">): string {
  if (node.address !== null) {
    if (port === node.port || node.port === 0) return node.address;
    const url = new URL(node.address);
    url.port = String(port);
    return url.origin;
  }
  const [first] = reachableAt(node.host);
  return `http://${withBrackets(first)}:${port}`;
}

/** Addresses of WebRTC candidates: as configured, the one address media is bound to, or those of the interfaces. */
export function publicAddressesOf(config: Config, mediaHost: string): readonly string[] {
  return config.media.publicAddresses.length > 0 ? config.media.publicAddresses : reachableAt(mediaHost);
}

/** Addresses by which others reach a socket bound to `host`. */
function reachableAt(host: string): readonly [string, ...string[]] {
  if (host !== "0.0.0.0" && host !== "::") return [host];
  const addresses = interfaceAddresses().filter(({ internal }) => !internal);
  // IPv4 first: some clients try only the first candidate.
  const ordered = [...addresses.filter(({ family }) => family === "IPv4")];
  if (host === "::") ordered.push(...addresses.filter(({ family }) => family === "IPv6"));
  const [first = "127.0.0.1", ...rest] = ordered.map(({ address }) => address);
  return [first, ...rest];
}

function interfaceAddresses() {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ address }) => !/^fe80:/i.test(address));
}

/** Hosts in a stream_url that count as our own: as configured, else every name and address of this machine. */
export function ownHosts(config: Config): readonly string[] {
  const configured = config.ingest.hosts.map((host) => withoutBrackets(host).toLowerCase());
  if (configured.length > 0) return configured;
  return ["localhost", hostname().toLowerCase(), ...interfaceAddresses().map(({ address }) => address)];
}

/** A host in URL form; "all addresses" is reached on this machine by loopback. */
function nameOf(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return withBrackets(host);
}
