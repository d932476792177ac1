// The URL of a PostgreSQL database on one or several servers, parsed as libpq does (PostgreSQL manual, 34.1.1.2 and
// 34.1.1.3). Whatever concerns only one server, such as TLS, is left to the driver.
import { Client } from "pg";
import { reasonOf } from "../../reason.ts";

/** Most servers in one URL. */
const SERVERS_LIMIT = 16;
const PORT_MOST = 65_535;
/** Supported values of `target_session_attrs`, and whether they require a writable server. */
const TARGETS: Readonly<Record<string, boolean>> = { any: false, "read-write": true, primary: true };

/** One of the servers. */
export interface DatabaseServer {
  /** Addresses only this server. Secret: it may contain a password. */
  readonly url: string;
  /** Host and port, for people. */
  readonly address: string;
}

export interface DatabaseUrl {
  /** In order of preference; never empty. */
  readonly servers: readonly DatabaseServer[];
  /** Whether a server is used only while it accepts writes: as `target_session_attrs` says, by default when there are
   *  several. */
  readonly mustBeWritable: boolean;
  readonly database: string;
}

/** Parts of a URL that name servers, before validation. */
interface Named {
  readonly host: string;
  readonly port: string;
}

/** Throws an error that describes the fault without the URL, which may contain a password. */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  if (!/^(postgres(ql)?:\/\/|socket:|\/)/.test(text)) throw new Error("must begin with postgres://");
  const parts = /^(postgres(?:ql)?:\/\/)(?:([^/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?$/.exec(text);
  if (parts === null && text.includes("#")) throw new Error("contains a # that is not escaped as %23");
  const parameters = new URLSearchParams(parts?.[5]);
  const mustBeWritable = wantsWrites(parameters.get("target_session_attrs"));
  const named = parts === null ? [] : namedServers(parts[3] ?? "", parameters);
  if (named.length > SERVERS_LIMIT) throw new Error(`names more than ${SERVERS_LIMIT} servers`);
  for (const { port } of named) checkPort(port);
  // A URL with one server is left to the driver, whatever it looks like.
  const [, scheme = "", user, , path = ""] = parts ?? [];
  const urls = named.length < 2 ? [text] : named.map((server) => urlOf(server, { scheme, user, path, parameters }));
  const opened = urls.map((url) => ({ url, ...parametersOf(url) }));
  return {
    servers: opened.map(({ url, host, port }) => ({ url, address: `${host}:${port}` })),
    mustBeWritable: mustBeWritable ?? opened.length > 1,
    database: opened[0]?.database ?? "",
  };
}

/** The fault of a URL; null when it can be used. */
export function faultOfDatabaseUrl(text: string): string | null {
  try {
    parseDatabaseUrl(text);
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

function wantsWrites(target: string | null): boolean | null {
  if (target === null) return null;
  const wants = Object.hasOwn(TARGETS, target) ? TARGETS[target] : undefined;
  if (wants !== undefined) return wants;
  const known = Object.keys(TARGETS).join(", ");
  throw new Error(`has an unusable target_session_attrs: Headgate needs to write, so it can be ${known}`);
}

/** From the authority, or from the parameters `host` and `port`, which take precedence. */
function namedServers(authority: string, parameters: URLSearchParams): readonly Named[] {
  const hosts = parameters.get("host")?.split(",");
  const ports = parameters.get("port")?.split(",");
  const between = authority.split(",").map((each) => {
    const found = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(each);
    if (found === null) throw new Error("names an invalid host; an IPv6 address must be in brackets");
    return { host: decodeURIComponent(found[1] ?? "").replace(/^\[(.*)\]$/, "$1"), port: found[2] ?? "" };
  });
  const servers = hosts === undefined ? between : hosts.map((host) => ({ host, port: "" }));
  if (servers.length > 1 && servers.some(({ host }) => host === "")) throw new Error("names an empty host");
  if (ports === undefined) return servers;
  if (ports.length !== 1 && ports.length !== servers.length) {
    throw new Error(`names ${ports.length} ports for ${servers.length} hosts`);
  }
  return servers.map(({ host }, at) => ({ host, port: ports[ports.length === 1 ? 0 : at] ?? "" }));
}

/** An empty port is the default one. */
function checkPort(port: string): void {
  if (port === "" || (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= PORT_MOST)) return;
  throw new Error(`names an invalid port: ports are numbers from 1 to ${PORT_MOST}`);
}

function urlOf(
  { host, port }: Named,
  rest: {
    readonly scheme: string;
    readonly user: string | undefined;
    readonly path: string;
    readonly parameters: URLSearchParams;
  },
): string {
  const own = new URLSearchParams(rest.parameters);
  for (const name of ["host", "port", "target_session_attrs"]) own.delete(name);
  own.set("host", host);
  if (port !== "") own.set("port", port);
  const user = rest.user === undefined ? "" : `${rest.user}@`;
  return `${rest.scheme}${user}${rest.path === "" ? "/" : rest.path}?${own}`;
}

/** Parsed by the driver, which opens only the certificate files that the URL names. */
function parametersOf(url: string): { readonly database: string; readonly host: string; readonly port: number } {
  try {
    const { database = "", host, port } = new Client({ connectionString: url });
    return { database, host, port };
  } catch (cause) {
    throw new Error(`cannot be read: ${reasonOf(cause)}`, { cause });
  }
}
