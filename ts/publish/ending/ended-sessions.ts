// WHIP sessions that have ended, or are being ended: for 120 s their URLs answer why, on every node and after a
// takeover. Recent ones are in memory, within bounds; the store has them all, by a hash of the id, which is a
// capability.
import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import { steadyClock } from "../../in-time.ts";
import type { Schema } from "../../store/schema.ts";
import type { AskedPublish, RunningPublish } from "../publishes.ts";
import { END_CODES, type Ending, endingFrom, readEnding } from "./ending.ts";

/** How long the URL of an ended session answers why, ms. */
const ANSWERED_MS = 120_000;
/** Kept in memory: for one organisation, and for all; beyond that the oldest are answered from the store. */
const ORGANISATION_LIMIT = 500;
const LIMIT = 5_000;
/** The form of every session's id (P6): anything else is not looked up. */
const SESSION_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.[0-9a-z]{1,10})?$/;

export interface EndedSessions {
  /** The session is over, or about to be, because of `ending`. No effect for RTMP. */
  add(publish: AskedPublish & Pick<RunningPublish, "session">, ending: Ending): void;
  /** The same for matching sessions that were only lost: nobody starts them again. */
  settle(isMeant: (publish: AskedPublish) => boolean, ending: Ending): void;
  /** Of those in memory; null: it runs, or is not known here. */
  recent(session: string): Ending | null;
  /** Whether a session that is not in memory may be in the store. */
  isPlausible(session: string): boolean;
  /** Of those in the store: null while the store has no such end, or cannot be read. */
  stored(session: string): Promise<Ending | null>;
}

export function createEndedSessions(deps: {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
}): EndedSessions {
  const { db, clock } = deps;
  /** For what is in memory. */
  const steady = steadyClock(clock);
  /** Oldest first. */
  const ended = new Map<string, { readonly publish: AskedPublish; readonly ending: Ending; readonly at: number }>();
  /** Ids of sessions of each organisation, oldest first. */
  const byOrganisation = new Map<string, Set<string>>();

  function forget(session: string): void {
    const { organisationId } = ended.get(session)?.publish.intent ?? {};
    ended.delete(session);
    if (organisationId === undefined) return;
    const own = byOrganisation.get(organisationId);
    own?.delete(session);
    if (own?.size === 0) byOrganisation.delete(organisationId);
  }

  function forgetOld(): void {
    for (const [session, { at }] of ended) {
      if (ended.size <= LIMIT && steady.now() - at < ANSWERED_MS) return;
      forget(session);
    }
  }

  return {
    add({ session, intent, claims }, ending) {
      if (session === null) return;
      forget(session);
      ended.set(session, { publish: { intent, claims }, ending, at: steady.now() });
      const own = byOrganisation.get(intent.organisationId) ?? new Set();
      byOrganisation.set(intent.organisationId, own.add(session));
      const [oldest] = own;
      if (own.size > ORGANISATION_LIMIT && oldest !== undefined) forget(oldest);
      forgetOld();
    },
    settle(isMeant, ending) {
      for (const [session, { publish, at, ending: before }] of ended) {
        if (!END_CODES[before.code].isFinal && isMeant(publish)) ended.set(session, { publish, at, ending });
      }
    },
    recent(session) {
      forgetOld();
      return ended.get(session)?.ending ?? null;
    },
    isPlausible: (session) => SESSION_ID.test(session),
    async stored(session) {
      const row = await db
        .selectFrom("publish")
        .select(["end_reason", "end_code", "end_who", "end_detail"])
        // Along the index of ends: there are few in so short a time.
        .where("ended_at", ">", clock.now() - ANSWERED_MS)
        .where("session", "=", sessionHash(session))
        .where("state", "=", "ended")
        .executeTakeFirst()
        .catch(() => undefined);
      return row === undefined ? null : (readEnding(row) ?? endingFrom(row.end_reason ?? ""));
    },
  };
}

/** What the store has of a session's id. */
export function sessionHash(session: string): string {
  return createHash("sha256").update(session).digest("base64url");
}
