// Resolves the names that customers supply: webhooks, stream_url, upstreams. getaddrinfo has four threads for the whole
// process and cannot be cancelled, so a few names whose servers hang would block everybody's look-ups. Here every
// look-up waits on a socket, has a time limit, and counts against its organisation. This is not a guard: which
// addresses may be called is decided where they are used.
import { CANCELLED, NODATA, NOTFOUND, TIMEOUT } from "node:dns";
import { isIP } from "node:net";
import { createHostFiles, type HostFiles } from "./host-files.ts";
import { createTurns } from "./look-up-turns.ts";
import { type Late, queryServers } from "./name-query.ts";

/** All addresses of a name, IPv4 first; rejects when it has none. `owner`: whose limit the look-up counts against: an
 *  organisation's id, or the name itself where each organisation has only one. */
export type Resolve = (host: string, owner?: string) => Promise<readonly string[]>;

/** Late families awaited for the cache, each with a socket; further ones are cancelled. */
const LATE_LIMIT = 256;
/** An answer is cached for at least this long, whatever its TTL, s. */
const TTL_LEAST_S = 5;
const TTL_MOST_S = 300;
/** How long a name that does not exist is not queried again, ms. */
const MISSING_MS = 2_000;
/** When servers fail, an expired answer is still used for this long (RFC 8767), ms. */
const STALE_MS = 60 * 60 * 1_000;
const CACHE_LIMIT = 4_096;

/** A name without addresses; `code` is c-ares' (ENOTFOUND, ETIMEOUT, ESERVFAIL, …). */
export class NotResolved extends Error {
  readonly code: string;
  readonly hostname: string;
  constructor(hostname: string, code: string) {
    super(`${code} ${hostname}`);
    this.name = "NotResolved";
    this.code = code;
    this.hostname = hostname;
  }
}

interface Entry {
  readonly addresses: readonly string[];
  /** Expiry on the clock of `now`, ms. */
  readonly until: number;
}

/** Uses the system's servers, hosts file and search domains unless `options` names others. `now`: a monotonic clock,
 *  ms. */
export function createResolver(
  options: { readonly servers?: readonly string[]; readonly files?: HostFiles; readonly now?: () => number } = {},
): Resolve {
  const { servers, now = () => performance.now(), files = createHostFiles(now) } = options;
  const cache = new Map<string, Entry>();
  const running = new Map<string, Promise<readonly string[]>>();
  const turns = createTurns();
  let lateFamilies = 0;

  function remember(name: string, addresses: readonly string[], ttlMs: number): Entry {
    const entry = { addresses, until: now() + ttlMs };
    cache.delete(name);
    cache.set(name, entry);
    // Evicts the least recently requested entry.
    if (cache.size > CACHE_LIMIT) cache.delete(cache.keys().next().value ?? "");
    return entry;
  }

  /** Adds the late family's addresses to the entry, unless another has replaced it. Never rejects. */
  async function join(name: string, entry: Entry, late: Late): Promise<void> {
    if (lateFamilies >= LATE_LIMIT) return late.cancel();
    lateFamilies += 1;
    const { addresses, ttl } = await late.both;
    lateFamilies -= 1;
    if (cache.get(name) === entry) cache.set(name, { addresses, until: Math.min(entry.until, now() + cachedMs(ttl)) });
  }

  async function lookUp(name: string): Promise<readonly string[]> {
    const listed = await files.addresses(name);
    if (listed.length > 0) {
      remember(name, listed, TTL_LEAST_S * 1_000);
      return listed;
    }
    try {
      const { addresses, ttl, late } = await queryServers(await files.candidates(name), servers);
      const entry = remember(name, addresses, cachedMs(ttl));
      if (late !== null) void join(name, entry, late);
      return addresses;
    } catch (error) {
      const { code: reported = TIMEOUT } = error as NodeJS.ErrnoException;
      const code = reported === CANCELLED ? TIMEOUT : reported;
      const isMissing = code === NOTFOUND || code === NODATA;
      const stale = cache.get(name);
      if (!isMissing && stale !== undefined && stale.addresses.length > 0 && now() < stale.until + STALE_MS) {
        return stale.addresses;
      }
      if (isMissing) remember(name, [], MISSING_MS);
      throw new NotResolved(name, code);
    }
  }

  function begin(name: string): Promise<readonly string[]> {
    const started = lookUp(name).finally(() => {
      running.delete(name);
    });
    running.set(name, started);
    return started;
  }

  return async (host, owner = host) => {
    if (isIP(host)) return [host];
    const name = host.toLowerCase();
    const known = cache.get(name);
    if (known !== undefined && now() < known.until) {
      if (known.addresses.length === 0) throw new NotResolved(name, NOTFOUND);
      return known.addresses;
    }
    // Joining a look-up that is already running takes no turn.
    return await (running.get(name) ?? turns.take(owner, () => running.get(name) ?? begin(name)));
  };
}

/** `ttl`: s. */
const cachedMs = (ttl: number) => Math.min(Math.max(ttl, TTL_LEAST_S), TTL_MOST_S) * 1_000;
