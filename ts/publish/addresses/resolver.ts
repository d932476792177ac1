// Resolves the names that customers supply: webhooks, stream_url, upstreams. getaddrinfo has four threads for the whole
// process and cannot be cancelled, so a few names whose servers hang would block everybody's look-ups. Here every
// look-up waits on a socket, has a time limit, and counts against its organisation. This is not a guard: which
// addresses may be called is decided where they are used.

import { CANCELLED, NODATA, NOTFOUND, TIMEOUT } from "node:dns";
import { isIP } from "node:net";
import { inTime } from "../../in-time.ts";
import { RecentMap } from "../../limits/recent-map.ts";
import { createHostFiles, type HostFiles } from "./host-files.ts";
import { createTurns, TooManyLookUps } from "./look-up-turns.ts";
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
/** While servers fail or are slow, an expired answer is still used for this long (RFC 8767), ms. */
const STALE_MS = 60 * 60 * 1_000;
/** How long a query may take before an expired answer is used in its place, ms: the look-up of a webhook's name counts
 *  against the call's deadline. */
const STALE_AFTER_MS = 500;
/** After a failed query, an expired answer is used for this long without another one (RFC 8767 5), ms. */
const STALE_PAUSE_MS = 5_000;
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
  /** Until when the addresses may be used if no query succeeds. */
  readonly usableUntil: number;
}

/** Uses the system's servers, hosts file and search domains unless `options` names others. `now`: a monotonic clock,
 *  ms. */
export function createResolver(
  options: { readonly servers?: readonly string[]; readonly files?: HostFiles; readonly now?: () => number } = {},
): Resolve {
  const { servers, now = () => performance.now(), files = createHostFiles(now) } = options;
  const cache = new RecentMap<string, Entry>(CACHE_LIMIT);
  const running = new Map<string, Promise<readonly string[]>>();
  const turns = createTurns();
  let lateFamilies = 0;

  function remember(name: string, addresses: readonly string[], ttlMs: number): Entry {
    const until = now() + ttlMs;
    const entry = { addresses, until, usableUntil: until + STALE_MS };
    cache.set(name, entry);
    return entry;
  }

  /** Adds the late family's addresses to the entry, unless another has replaced it. Never rejects. */
  async function join(name: string, entry: Entry, late: Late): Promise<void> {
    if (lateFamilies >= LATE_LIMIT) return late.cancel();
    lateFamilies += 1;
    const { addresses, ttl } = await late.both;
    lateFamilies -= 1;
    if (cache.get(name) !== entry) return;
    cache.set(name, { ...entry, addresses, until: Math.min(entry.until, now() + cachedMs(ttl)) });
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
      const stale = isMissing ? null : staleEntry(name);
      if (stale !== null) {
        cache.set(name, { ...stale, until: now() + STALE_PAUSE_MS });
        return stale.addresses;
      }
      if (isMissing) remember(name, [], MISSING_MS);
      throw new NotResolved(name, code);
    }
  }

  /** An answer that has expired, but may be used while no query succeeds. */
  function staleEntry(name: string): Entry | null {
    const entry = cache.get(name);
    return entry !== undefined && entry.addresses.length > 0 && now() < entry.usableUntil ? entry : null;
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
    const stale = staleEntry(name);
    // Joining a look-up that is already running takes no turn.
    const resolving = running.get(name) ?? turns.take(owner, () => running.get(name) ?? begin(name));
    if (stale === null) return await resolving;
    // A stale answer beats a late one, and a refusal because too many names are being resolved. The query goes on.
    const late = (error: unknown) => {
      if (error instanceof TooManyLookUps) return stale.addresses;
      throw error;
    };
    return await inTime(STALE_AFTER_MS, resolving.catch(late), stale.addresses);
  };
}

/** `ttl`: s. */
const cachedMs = (ttl: number) => Math.min(Math.max(ttl, TTL_LEAST_S), TTL_MOST_S) * 1_000;
