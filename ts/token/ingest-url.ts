// Whether two spellings of an ingest URL mean the same place (T6): deployed clients write what their user or vendor
// typed.

/** Default ports of the schemes. */
const PORTS: Readonly<Record<string, string>> = { "rtmp:": "1935", "rtmps:": "443" };

/** Ignores the case of scheme and host, the default port and a trailing slash. */
export function isSameIngestUrl(one: string, other: string): boolean {
  return one === other || (plain(one) !== null && plain(one) === plain(other));
}

function plain(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, username, password, hostname, port, pathname, search } = new URL(text);
  const at = `${hostname.toLowerCase()}:${port || (PORTS[protocol] ?? "")}`;
  return JSON.stringify([protocol, username, password, at, pathname.replace(/\/$/, ""), search]);
}
