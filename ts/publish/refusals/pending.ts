// Refusals that wait to be written, equal ones as one. Bounded for each organisation, for each network that uses unknown
// names, and in total: beyond a limit they lose what tells them apart, and are counted together.
import { networkOf } from "../../network.ts";
import type { RefusalTable } from "../../store/tables/refusal-table.ts";
import type { RefusalReason } from "./reasons.ts";

/** Different refusals of one organisation; further ones are counted without stream and address. */
const OF_ORGANISATION_LIMIT = 1_000;
/** Refusals from one network whose stream is not known; further ones are counted without name. */
const OF_NETWORK_LIMIT = 50;
/** Those and different addresses of it; further ones are counted without address, too. */
const OF_NETWORK_IN_ALL_LIMIT = 60;
/** The same of all networks. */
const UNKNOWN_LIMIT = 2_000;
/** All; further ones are dropped and counted. */
const WAITING_LIMIT = 5_000;

/** What refusals are equal by. */
export interface RefusalKind {
  readonly request: RefusalTable["request"];
  readonly protocol: RefusalTable["protocol"];
  readonly reason: RefusalReason;
  /** Ids; null while unknown, or for several streams. */
  readonly organisation: string | null;
  readonly stream: string | null;
  /** As sent, where the stream is not known; null for none, or several. */
  readonly name: string | null;
  /** "" for several. */
  readonly address: string;
}

export interface PendingRefusal extends RefusalKind {
  /** What the last one was told. */
  detail: string | null;
  count: number;
  /** Epoch ms. */
  firstAt: number;
  lastAt: number;
}

export interface Pending {
  readonly size: number;
  add(refusal: Readonly<PendingRefusal>): void;
  /** Removes up to `most` of them, those that wait for longest. */
  take(most: number): readonly PendingRefusal[];
  /** How many were dropped since the last call. */
  dropped(): number;
}

export function createPending(): Pending {
  const waiting = new Map<string, PendingRefusal>();
  /** By owner: an organisation, a network, or all networks together. */
  const counts = new Map<string, number>();
  let dropped = 0;

  const countOf = (owner: string) => counts.get(owner) ?? 0;
  function count(refusal: RefusalKind, change: 1 | -1): void {
    for (const owner of ownersOf(refusal)) {
      const next = countOf(owner) + change;
      if (next > 0) counts.set(owner, next);
      else counts.delete(owner);
    }
  }

  function merged(refusal: Readonly<PendingRefusal>): boolean {
    const known = waiting.get(keyOf(refusal));
    if (known !== undefined) merge(known, refusal);
    return known !== undefined;
  }

  /** The refusal with as much detail as there is room for. */
  function fitted(refusal: Readonly<PendingRefusal>): Readonly<PendingRefusal> {
    if (refusal.organisation !== null) {
      // As much as is left, so that organisations under flood share the room, and leave as much to one without.
      const limit = Math.min(OF_ORGANISATION_LIMIT, WAITING_LIMIT - waiting.size);
      if (countOf(refusal.organisation) < limit) return refusal;
      return { ...refusal, stream: null, address: "" };
    }
    const ofNetwork = countOf(networkOf(refusal.address));
    if (countOf(UNKNOWN) >= UNKNOWN_LIMIT || ofNetwork >= OF_NETWORK_IN_ALL_LIMIT)
      return { ...refusal, name: null, address: "" };
    return ofNetwork < OF_NETWORK_LIMIT ? refusal : { ...refusal, name: null };
  }

  return {
    get size() {
      return waiting.size;
    },
    add(refusal) {
      if (merged(refusal)) return;
      const entry = fitted(refusal);
      if (entry !== refusal && merged(entry)) return;
      if (waiting.size >= WAITING_LIMIT) {
        dropped += refusal.count;
        return;
      }
      waiting.set(keyOf(entry), { ...entry });
      count(entry, 1);
    },
    take(most) {
      const taken = [...waiting].slice(0, most);
      for (const [key, refusal] of taken) {
        waiting.delete(key);
        count(refusal, -1);
      }
      return taken.map(([, refusal]) => refusal);
    },
    dropped() {
      const before = dropped;
      dropped = 0;
      return before;
    },
  };
}

const UNKNOWN = "unknown";

function ownersOf({ organisation, address }: RefusalKind): readonly string[] {
  if (organisation !== null) return [organisation];
  return address === "" ? [] : [UNKNOWN, networkOf(address)];
}

export function merge(into: PendingRefusal, other: Readonly<PendingRefusal>): void {
  into.count += other.count;
  into.firstAt = Math.min(into.firstAt, other.firstAt);
  if (other.lastAt < into.lastAt) return;
  into.lastAt = other.lastAt;
  into.detail = other.detail;
}

export function keyOf({ request, protocol, reason, organisation, stream, name, address }: RefusalKind): string {
  return JSON.stringify([request, protocol, reason, organisation, stream, name, address]);
}
