// Which row of the store counts a refusal: equal ones within ten minutes share one. How many rows there may be in ten
// minutes is bounded, for each stream, organisation and network and for all unknown names together: beyond that, a row
// without address or name counts the rest. Whoever repeats or guesses makes no further rows.
import { createHash } from "node:crypto";
import { networkOf } from "../../network.ts";
import type { RefusalTable } from "../../store/tables/refusal-table.ts";
import { keyOf, merge, type PendingRefusal } from "./pending.ts";

/** Refusals that begin within the same ten minutes, by the clock, share rows. */
export const SHARED_MS = 600_000;
/** Rows with an address of one stream, in that time and from one node. */
const OF_STREAM_LIMIT = 20;
/** Rows of one organisation that have an address or name a stream. */
const OF_ORGANISATION_LIMIT = 5_000;
/** Rows with a name that no stream has, from one network, and from all. */
const OF_NETWORK_LIMIT = 20;
const UNKNOWN_LIMIT = 500;
/** Rows without any name, such as those of connections that are no RTMP. */
const NAMELESS_LIMIT = 200;
/** Rows of all together that name anything. */
const ALL_LIMIT = 20_000;

const ALL = "";
const UNKNOWN = "unknown";
const NAMELESS = "nameless";

export interface RefusalRows {
  /** The rows for these refusals, whose streams have been looked up; no two have the same id. */
  rowsOf(refusals: readonly PendingRefusal[]): readonly RefusalTable[];
}

export function createRefusalRows(): RefusalRows {
  let since = 0;
  /** By owner: the rows that count for its limit. */
  const known = new Map<string, Set<string>>();

  /** Takes a place for a row in each of the limits; false when one of them is reached. */
  function isAdmitted(id: string, limits: readonly (readonly [owner: string, limit: number])[]): boolean {
    const sets = limits.map(([owner, limit]) => ({ owner, limit, ids: known.get(owner) ?? new Set<string>() }));
    if (sets.some(({ ids, limit }) => !ids.has(id) && ids.size >= limit)) return false;
    for (const { owner, ids } of sets) known.set(owner, ids.add(id));
    return true;
  }

  function placed(refusal: PendingRefusal): { readonly id: string; readonly refusal: PendingRefusal } {
    // An organisation may take as much as is left: those under flood leave as much to one without.
    const left = ALL_LIMIT - (known.get(ALL)?.size ?? 0);
    for (const { limits, ...less } of formsOf(refusal, left)) {
      const form = { ...refusal, ...less };
      const id = idOf(form);
      if (isAdmitted(id, limits)) return { id, refusal: form };
    }
    const least = { ...refusal, stream: null, name: null, address: "" };
    return { id: idOf(least), refusal: least };
  }

  return {
    rowsOf(refusals) {
      const rows = new Map<string, PendingRefusal>();
      for (const each of refusals) {
        const begun = beginningOf(each.firstAt);
        if (begun !== since) known.clear();
        since = begun;
        const { id, refusal } = placed(each);
        const other = rows.get(id);
        if (other === undefined) rows.set(id, refusal);
        else merge(other, refusal);
      }
      return [...rows].map(([id, refusal]) => rowOf(id, refusal));
    },
  };
}

/** The forms in which a refusal can be counted, that with the most detail first, each with its limits. */
function* formsOf({ organisation, stream, name, address }: PendingRefusal, left: number) {
  const all = [ALL, ALL_LIMIT] as const;
  if (organisation !== null) {
    const ofOrganisation = [organisation, Math.min(OF_ORGANISATION_LIMIT, left)] as const;
    yield { address, limits: [[stream ?? organisation, OF_STREAM_LIMIT], ofOrganisation, all] as const };
    if (stream !== null) yield { address: "", limits: [ofOrganisation, all] as const };
    return;
  }
  const unknown = name === null ? ([NAMELESS, NAMELESS_LIMIT] as const) : ([UNKNOWN, UNKNOWN_LIMIT] as const);
  if (name !== null) yield { name, limits: [[networkOf(address), OF_NETWORK_LIMIT], unknown, all] as const };
  yield { name: null, limits: [unknown, all] as const };
}

const beginningOf = (at: number) => Math.floor(at / SHARED_MS);

function idOf(refusal: PendingRefusal): string {
  const equal = `${beginningOf(refusal.firstAt)} ${keyOf(refusal)}`;
  return createHash("sha256").update(equal).digest("base64url").slice(0, 22);
}

function rowOf(id: string, refusal: PendingRefusal): RefusalTable {
  const { request, protocol, reason, organisation, stream, name, detail, address, count, firstAt, lastAt } = refusal;
  return {
    id,
    organisation_id: organisation ?? "",
    stream_id: stream,
    name,
    request,
    protocol,
    reason,
    detail,
    address,
    count,
    first_at: firstAt,
    last_at: lastAt,
  };
}
