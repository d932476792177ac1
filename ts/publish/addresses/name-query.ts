// One look-up of a name at DNS servers, for both address families. The cache and the limits per organisation are
// elsewhere: resolver.ts.
import { NODATA, NOTFOUND, type RecordWithTtl } from "node:dns";
import { Resolver as Channel } from "node:dns/promises";
import { inTime } from "../../in-time.ts";

/** Timeout of one query to one server, ms. c-ares doubles it from try to try. */
const TRY_MS = 1_000;
const TRIES = 2;
/** Limit of a whole look-up with all its tries and search domains, ms. */
const LOOK_UP_LIMIT_MS = 5_000;
/** How long the other address family is awaited once one has addresses (RFC 8305 3), ms: some servers drop every query
 *  for AAAA (RFC 4074 4.1). */
const RESOLUTION_DELAY_MS = 250;

interface Found {
  readonly addresses: readonly string[];
  /** Time to live, s: the shortest of theirs. */
  readonly ttl: number;
}

/** A family that has not answered yet. */
export interface Late {
  /** The addresses of both families, or of the one when the other fails. Never rejects. */
  readonly both: Promise<Found>;
  cancel(): void;
}

/** One family's answer. */
interface Family {
  readonly records: readonly RecordWithTtl[];
  /** c-ares' error, or null. */
  readonly failure: unknown;
}

/** The addresses of the first of `names` that has any. Rejects with c-ares' error. Uses a channel of its own, so that a
 *  hanging query can be cancelled. `servers`: undefined for the system's. */
export async function queryServers(
  names: readonly string[],
  servers: readonly string[] | undefined,
): Promise<Found & { readonly late: Late | null }> {
  const channel = new Channel({ timeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) channel.setServers(servers);
  let isOver = false;
  const cancel = () => {
    isOver = true;
    channel.cancel();
  };
  const timer = setTimeout(cancel, LOOK_UP_LIMIT_MS);
  let late: Late | null = null;
  let failure: unknown = Object.assign(new Error("no name"), { code: NOTFOUND });
  try {
    for (const name of names) {
      if (isOver) break;
      const families = [channel.resolve4(name, { ttl: true }), channel.resolve6(name, { ttl: true })].map(settled);
      const answers = await promptAnswers(families);
      const found = foundIn(answers);
      if (found.addresses.length > 0) {
        if (answers.includes(null)) {
          const both = Promise.all(families).then(foundIn);
          late = { both: both.finally(() => clearTimeout(timer)), cancel };
        }
        return { ...found, late };
      }
      // A server failure is reported in preference to a missing name.
      for (const answer of answers) {
        if (answer !== null && answer.failure !== null) failure = graver(failure, answer.failure);
      }
    }
    throw failure;
  } finally {
    if (late === null) clearTimeout(timer);
  }
}

/** Never rejects. */
function settled(query: Promise<readonly RecordWithTtl[]>): Promise<Family> {
  return query.then(
    (records) => ({ records, failure: null }),
    (failure: unknown) => ({ records: [], failure }),
  );
}

/** Both families' answers; null for one that is missing `RESOLUTION_DELAY_MS` after the other's addresses. */
async function promptAnswers(families: readonly Promise<Family>[]): Promise<readonly (Family | null)[]> {
  const all = Promise.all(families);
  const enough = families.map(async (family) => {
    const { records } = await family;
    return records.length > 0 ? await inTime(RESOLUTION_DELAY_MS, all, null) : await all;
  });
  const complete = await Promise.race(enough);
  // A promise that has been fulfilled wins against null.
  return complete ?? (await Promise.all(families.map((family) => Promise.race([family, null]))));
}

/** IPv4 first. */
function foundIn(answers: readonly (Family | null)[]): Found {
  const records = answers.flatMap((answer) => answer?.records ?? []);
  return { addresses: records.map(({ address }) => address), ttl: Math.min(...records.map(({ ttl }) => ttl)) };
}

function graver(known: unknown, next: unknown): unknown {
  const { code } = known as NodeJS.ErrnoException;
  return code === NOTFOUND || code === NODATA ? next : known;
}
