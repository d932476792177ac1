// Whether two spellings of an ingest URL name one place (T6): deployed clients write what their user or vendor typed.

/** Ports that a URL of the scheme means without saying so. */
const PORTS: Readonly<Record<string, string>> = { "rtmp:": "1935", "rtmps:": "443" };

/** The case of scheme and host, the default port and a slash at the end do not count. */
export function isSameIngestUrl(one: string, other: string): boolean {
  return one === other || (plain(one) !== null && plain(one) === plain(other));
}

function plain(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, username, password, hostname, port, pathname, search } = new URL(text);
  const at = `${hostname.toLowerCase()}:${port || (PORTS[protocol] ?? "")}`;
  return JSON.stringify([protocol, username, password, at, pathname.replace(/\/$/, ""), search]);
}
