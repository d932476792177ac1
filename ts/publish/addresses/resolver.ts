// The names that customers bring, resolved: webhooks, stream_url, upstreams. getaddrinfo has four threads for the whole
// process and cannot be stopped, so that a few names whose servers hang would stop everybody's. Here every look-up waits
// on a socket, ends in time, and counts for its organisation. Not a guard: which addresses may be called is decided
// where they are used.
import { CANCELLED, NODATA, NOTFOUND, TIMEOUT } from "node:dns";
import { Resolver as Channel } from "node:dns/promises";
import { isIP } from "node:net";
import { createHostFiles, type HostFiles } from "./host-files.ts";
import { createTurns } from "./look-up-turns.ts";

/** All addresses of a name, IPv4 first; rejects when it has none. `owner`: whose look-up it is; an organisation's id, or
 *  the name itself where one organisation has only one. */
export type Resolve = (host: string, owner?: string) => Promise<readonly string[]>;

/** One question to one server, ms. c-ares doubles it from try to try. */
const TRY_MS = 1_000;
const TRIES = 2;
/** A look-up with all its tries and search domains, ms. */
const LOOK_UP_LIMIT_MS = 5_000;
/** How long an answer is believed, whatever its TTL says, s. */
const TTL_LEAST_S = 5;
const TTL_MOST_S = 300;
/** How long a name that does not exist is not asked for again, ms. */
const MISSING_MS = 2_000;
/** When servers fail, an answer that was right so long ago is better than none (RFC 8767), ms. */
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
  /** On the clock of `now`, ms. */
  readonly until: number;
}

/** The system's servers, hosts file and search domains unless `options` names others. `now`: a clock that is never set
 *  back, ms. */
export function createResolver(
  options: { readonly servers?: readonly string[]; readonly files?: HostFiles; readonly now?: () => number } = {},
): Resolve {
  const { servers, now = () => performance.now(), files = createHostFiles(now) } = options;
  const cache = new Map<string, Entry>();
  const running = new Map<string, Promise<readonly string[]>>();
  const turns = createTurns();

  function remember(name: string, addresses: readonly string[], ttlMs: number): void {
    cache.delete(name);
    cache.set(name, { addresses, until: now() + ttlMs });
    // The one that was asked for longest ago.
    if (cache.size > CACHE_LIMIT) cache.delete(cache.keys().next().value ?? "");
  }

  async function lookUp(name: string): Promise<readonly string[]> {
    const listed = await files.addresses(name);
    if (listed.length > 0) {
      remember(name, listed, TTL_LEAST_S * 1_000);
      return listed;
    }
    try {
      const { addresses, ttl } = await ask(await files.candidates(name), servers);
      remember(name, addresses, Math.min(Math.max(ttl, TTL_LEAST_S), TTL_MOST_S) * 1_000);
      return addresses;
    } catch (error) {
      const { code: told = TIMEOUT } = error as NodeJS.ErrnoException;
      const code = told === CANCELLED ? TIMEOUT : told;
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
    // Joining one that is under way costs nothing.
    return await (running.get(name) ?? turns.take(owner, () => running.get(name) ?? begin(name)));
  };
}

/** The first of `names` that has addresses, and for how long they hold, s. A channel of its own: what hangs is stopped. */
async function ask(
  names: readonly string[],
  servers: readonly string[] | undefined,
): Promise<{ readonly addresses: readonly string[]; readonly ttl: number }> {
  const channel = new Channel({ timeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) channel.setServers(servers);
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    channel.cancel();
  }, LOOK_UP_LIMIT_MS);
  let failure: unknown = Object.assign(new Error("no name"), { code: NOTFOUND });
  try {
    for (const name of names) {
      if (isOver) break;
      const answers = await Promise.allSettled([
        channel.resolve4(name, { ttl: true }),
        channel.resolve6(name, { ttl: true }),
      ]);
      const records = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (records.length > 0) {
        const ttl = Math.min(...records.map((record) => record.ttl));
        return { addresses: records.map(({ address }) => address), ttl };
      }
      // What failed says more than what is not there.
      for (const answer of answers) {
        if (answer.status === "rejected") failure = graver(failure, answer.reason);
      }
    }
    throw failure;
  } finally {
    clearTimeout(timer);
  }
}

function graver(known: unknown, next: unknown): unknown {
  const { code } = known as NodeJS.ErrnoException;
  return code === NOTFOUND || code === NODATA ? next : known;
}
