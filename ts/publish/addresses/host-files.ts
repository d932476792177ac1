// Name resolution from the machine's own files: /etc/hosts, and the search domains of /etc/resolv.conf; c-ares only
// queries servers. Formats: hosts(5), resolv.conf(5).
import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";

export interface HostFiles {
  /** Addresses of a name in the hosts file; empty when it is not listed. `localhost` always has addresses (RFC 6761
   *  6.3). */
  addresses(name: string): Promise<readonly string[]>;
  /** The fully qualified names to query, in order. */
  candidates(name: string): Promise<readonly string[]>;
}

const SEARCH_LIMIT = 6;
/** How often a file is checked for changes, ms: each check occupies a thread of the pool, and look-ups come in
 *  bursts. */
const CHECK_EVERY_MS = 1_000;

/** A changed file is read again within a second. `now`: a monotonic clock, ms. */
export function createHostFiles(
  now: () => number,
  paths = { hosts: "/etc/hosts", resolvConf: "/etc/resolv.conf" },
): HostFiles {
  const hosts = keptFile(paths.hosts, parseHosts, now);
  const resolvConf = keptFile(paths.resolvConf, parseResolvConf, now);
  return {
    async addresses(name) {
      const plain = withoutDot(name);
      const listed = (await hosts()).get(plain);
      if (listed !== undefined) return listed;
      return plain === "localhost" || plain.endsWith(".localhost") ? ["127.0.0.1", "::1"] : [];
    },
    async candidates(name) {
      if (name.endsWith(".")) return [withoutDot(name)];
      const { search, ndots } = await resolvConf();
      const searched = search.map((domain) => `${name}.${domain}`);
      return name.split(".").length > ndots ? [name, ...searched] : [...searched, name];
    },
  };
}

const withoutDot = (name: string) => (name.endsWith(".") ? name.slice(0, -1) : name);

/** The parsed file as of the last check; parsed as empty when it cannot be read. */
function keptFile<T>(path: string, parse: (text: string) => T, now: () => number): () => Promise<T> {
  let kept = { version: "", parsed: parse("") };
  let nextCheck = 0;
  let latest: Promise<T> | null = null;
  return () => {
    if (latest === null || now() >= nextCheck) {
      nextCheck = now() + CHECK_EVERY_MS;
      latest = readNow();
    }
    return latest;
  };

  async function readNow(): Promise<T> {
    try {
      const { mtimeMs, size, ino } = await stat(path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version !== kept.version) kept = { version, parsed: parse(await readFile(path, "utf8")) };
    } catch {
      kept = { version: "", parsed: parse("") };
    }
    return kept.parsed;
  }
}

function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names.map((listed) => listed.toLowerCase())) {
      const known = hosts.get(name) ?? [];
      // IPv4 first, as in every list of addresses here.
      hosts.set(
        name,
        isIP(address) === 4
          ? [...known.filter((a) => isIP(a) === 4), address, ...known.filter((a) => isIP(a) === 6)]
          : [...known, address],
      );
    }
  }
  return hosts;
}

function parseResolvConf(text: string): { readonly search: readonly string[]; readonly ndots: number } {
  let search: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    // The last such line wins.
    if (keyword === "search" || keyword === "domain") {
      search = values
        .map((domain) => withoutDot(domain))
        .filter((domain) => domain !== "")
        .slice(0, SEARCH_LIMIT);
    }
    const option = keyword === "options" ? values.find((value) => /^ndots:\d+$/.test(value)) : undefined;
    if (option !== undefined) ndots = Math.min(Number(option.slice("ndots:".length)), 15);
  }
  return { search, ndots };
}
