// Sessions of people: a random id in a cookie, stored as SHA-256, ended by sign-out, idleness or age; and the token
// that proves a request came from our own page.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { WrongCredentials } from "../errors.ts";
import type { PersonSessionTable, PersonTable, Schema } from "../store/schema.ts";
import { LAST_USE_STEP_MS, LastUses } from "../store/statements/last-uses.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import { passwordHolds } from "./passwords.ts";

/** A session ends after this much idle time, and at this age, ms. */
const IDLE_LIMIT_MS = 8 * 3_600_000;
/** Sessions of one person; a further one ends the one that was used longest ago. */
export const SESSIONS_LIMIT = 100;
/** Sessions above the limit that one sign-in ends: there are more only after an upgrade. */
const SURPLUS_REMOVED = 1_000;
export const AGE_LIMIT_MS = 7 * 86_400_000;
const ID_BYTES = 32;

export interface Logins {
  /** The id of a new session for the correct password. Rejects with `WrongCredentials`, the same for an unknown e-mail,
   *  or `TooManyRequests`. */
  open(
    email: string,
    password: string,
    address: string,
  ): Promise<{ readonly id: string; readonly person: PersonTable }>;
  /** Opens a session in the transaction `trx` for a person who proved otherwise who they are, and returns its id. */
  openFor(trx: Kysely<Schema>, personId: string): Promise<string>;
  /** Counts an attempt at the password of a signed-in person. Throws `TooManyRequests`. */
  attempt(personId: string, address: string): void;
  /** The person of a session; null when it does not exist (any more). */
  find(id: string): Promise<PersonTable | null>;
  /** Ends a session; no effect when it does not exist. */
  end(id: string): Promise<void>;
}

export function createLogins(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly throttle: LoginThrottle;
  readonly log: Pick<Logger, "warn">;
}): Logins {
  const { db, clock, throttle, log } = deps;
  /** By the hash of the session. */
  const uses = new LastUses();

  return {
    async open(email, password, address) {
      const name = email.trim().toLowerCase();
      throttle.attempt(name, address);
      try {
        const opened = await openSession(name, password);
        throttle.succeeded(name, address);
        return opened;
      } catch (error) {
        if (!(error instanceof WrongCredentials)) throttle.unchecked(name, address);
        throw error;
      }
    },
    async openFor(trx, personId) {
      const now = clock.now();
      await trx.updateTable("person").set({ last_login_at: now }).where("id", "=", personId).execute();
      return await insertSession(trx, personId, now);
    },
    attempt: (personId, address) => throttle.attempt(personId, address),
    async find(id) {
      const hash = hashOf(id);
      const session = await db.selectFrom("person_session").selectAll().where("hash", "=", hash).executeTakeFirst();
      const now = clock.now();
      if (session === undefined) return null;
      const [createdAt, seenAt] = [Number(session.created_at), Number(session.last_seen_at)];
      if (now - createdAt >= AGE_LIMIT_MS || now - seenAt >= IDLE_LIMIT_MS) return null;
      if (Math.abs(now - seenAt) >= LAST_USE_STEP_MS) recordSeen(session, now);
      const person = await db.selectFrom("person").selectAll().where("id", "=", session.person_id).executeTakeFirst();
      return person ?? null;
    },
    async end(id) {
      await db.deleteFrom("person_session").where("hash", "=", hashOf(id)).execute();
    },
  };

  /** Not awaited: a store that cannot be written must not keep people from the page that says so. */
  function recordSeen({ hash, person_id: personId }: PersonSessionTable, now: number): void {
    if (!uses.take(hash, now)) return;
    db.updateTable("person_session")
      .set({ last_seen_at: now })
      .where("hash", "=", hash)
      .execute()
      .catch((err: unknown) => log.warn({ err, personId }, "last use of a session not recorded"));
  }

  async function openSession(name: string, password: string): Promise<{ id: string; person: PersonTable }> {
    const isText = !name.includes("\0") && name.isWellFormed(); // what the store can compare
    const person = isText
      ? await db.selectFrom("person").selectAll().where("email", "=", name).executeTakeFirst()
      : undefined;
    const holds = await passwordHolds(person?.password_hash ?? null, password);
    if (person === undefined || !holds) throw new WrongCredentials();
    const now = clock.now();
    const id = await db.transaction().execute(async (trx) => {
      const seen = trx.updateTable("person").set({ last_login_at: now }).where("id", "=", person.id);
      // The password may have been changed since it was read, which ends all sessions.
      const { numUpdatedRows } = await seen.where("password_hash", "=", person.password_hash).executeTakeFirst();
      if (numUpdatedRows === 0n) throw new WrongCredentials();
      return await insertSession(trx, person.id, now);
    });
    return { id, person };
  }
}

/** Adds a session of a person, in place of those that are over, and returns its id. */
async function insertSession(trx: Kysely<Schema>, personId: string, now: number): Promise<string> {
  const id = randomBytes(ID_BYTES).toString("base64url");
  await trx
    .deleteFrom("person_session")
    .where("person_id", "=", personId)
    .where((eb) => eb.or([eb("created_at", "<", now - AGE_LIMIT_MS), eb("last_seen_at", "<", now - IDLE_LIMIT_MS)]))
    .execute();
  await trx
    .insertInto("person_session")
    .values({ hash: hashOf(id), person_id: personId, created_at: now, last_seen_at: now })
    .execute();
  const surplus = trx
    .selectFrom("person_session")
    .select("hash")
    .where("person_id", "=", personId)
    .where("hash", "<>", hashOf(id))
    .orderBy("last_seen_at", "desc")
    .orderBy("hash")
    .limit(SURPLUS_REMOVED)
    .offset(SESSIONS_LIMIT - 1);
  await trx.deleteFrom("person_session").where("hash", "in", surplus).execute();
  return id;
}

/** The token that a page sends with every change. Derived from the session's id, which no script can read. */
export function pageTokenOf(sessionId: string): string {
  return createHash("sha256").update(`page token of ${sessionId}`).digest("base64url");
}

/** Whether `given` is the page token of the session; compared in constant time. */
export function pageTokenHolds(sessionId: string, given: string | null): boolean {
  const [right, said] = [Buffer.from(pageTokenOf(sessionId)), Buffer.from(given ?? "")];
  return right.length === said.length && timingSafeEqual(right, said);
}

function hashOf(id: string): string {
  return createHash("sha256").update(id).digest("hex");
}
