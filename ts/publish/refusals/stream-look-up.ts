// Whose stream has a name that was refused before anybody looked: for the rows and the log lines of refusals, which are
// written in the background.
import type { Kysely } from "kysely";
import { inTime } from "../../in-time.ts";
import type { Schema } from "../../store/schema.ts";

/** Names in one statement. */
const NAMES_PER_STATEMENT = 100;
/** How long a log line waits, ms: it is written without its stream while the store does not answer. */
const WAIT_MS = 2_000;

/** Ids. */
export interface FoundStream {
  readonly organisation: string;
  readonly stream: string;
}

/** By name; those of deleted streams, too: their organisation learns why. */
export async function streamsNamed(
  reads: Kysely<Schema>,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, FoundStream>> {
  const all = [...names];
  const found = new Map<string, FoundStream>();
  for (let from = 0; from < all.length; from += NAMES_PER_STATEMENT) {
    const some = all.slice(from, from + NAMES_PER_STATEMENT);
    const streams = reads.selectFrom("stream").select(["id", "organisation_id", "name"]).where("name", "in", some);
    for (const { name, id, organisation_id } of await streams.execute())
      found.set(name, { organisation: organisation_id, stream: id });
  }
  return found;
}

export interface StreamLookUps {
  /** Null: no stream has the name, or it is not known in time. Never rejects. */
  find(name: string): Promise<FoundStream | null>;
  /** Resolves when every name so far has been looked up. */
  settled(): Promise<void>;
}

/** Names that are asked for while a look-up runs are looked up together. */
export function createStreamLookUps(reads: Kysely<Schema>): StreamLookUps {
  type Found = Awaited<ReturnType<typeof streamsNamed>>;
  const nothing: Found = new Map();
  let last: Promise<Found> = Promise.resolve(nothing);
  let next: { readonly names: Set<string>; readonly found: Promise<Found> } | null = null;

  function begin() {
    const names = new Set<string>();
    const found = last.then(() => {
      next = null;
      return inTime(WAIT_MS, streamsNamed(reads, names), nothing);
    });
    last = found.catch(() => nothing);
    return { names, found: last };
  }

  return {
    async find(name) {
      next ??= begin();
      next.names.add(name);
      return (await next.found).get(name) ?? null;
    },
    async settled() {
      await last;
    },
  };
}
