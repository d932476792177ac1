// API keys: issued once, kept as SHA-256, and who is behind the one a request carries (M3, M15).
import { createHash, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { BadApiKey, OrganisationNotEnabled } from "../errors.ts";
import type { OrganisationTable, Role, Schema } from "../store/schema.ts";
import { newKeyText } from "./key-text.ts";
import { type Action, requireRole } from "./roles.ts";

/** How exact `last_used_at` is, ms: a write per request would cost an fsync each. */
const LAST_USED_STEP_MS = 60_000;
/** Compared with when a key is unknown, so that both refusals do the same work (M3). */
const NO_HASH = "0".repeat(64);

/** Who makes a request. */
export interface Caller {
  readonly organisation: Readonly<OrganisationTable>;
  readonly role: Role;
  readonly keyId: string;
}

export interface ApiKeys {
  /** The caller behind `key` if it may do `action`. Throws `BadApiKey` (also for null), `OrganisationNotEnabled` or
   *  `RoleRequired`. */
  authorise(key: string | null, action: Action): Promise<Caller>;
}

export function createApiKeys(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Logger;
}): ApiKeys {
  const { db, clock, log } = deps;

  function touch(id: string, lastUsedAt: number | null, now: number): void {
    if (lastUsedAt !== null && now - lastUsedAt < LAST_USED_STEP_MS) return;
    db.updateTable("api_key")
      .set({ last_used_at: now })
      .where("id", "=", id)
      .execute()
      .catch((err: unknown) => log.warn({ err, keyId: id }, "last use of an API key not recorded"));
  }

  return {
    async authorise(key, action) {
      const hash = hashOfKey(key ?? "");
      const row = await db.selectFrom("api_key").selectAll().where("hash", "=", hash).executeTakeFirst();
      const same = timingSafeEqual(Buffer.from(hash), Buffer.from(row?.hash ?? NO_HASH));
      const now = clock.now();
      if (row === undefined || !same || (row.expires_at !== null && Number(row.expires_at) <= now))
        throw new BadApiKey();
      const organisation = await db
        .selectFrom("organisation")
        .selectAll()
        .where("id", "=", row.organisation_id)
        .executeTakeFirstOrThrow();
      if (organisation.enabled === 0) throw new OrganisationNotEnabled();
      requireRole(row.role, action);
      touch(row.id, row.last_used_at === null ? null : Number(row.last_used_at), now);
      return { organisation, role: row.role, keyId: row.id };
    },
  };
}

/** SHA-256 of a whole key, lower-case hex: what the store keeps of it. */
export function hashOfKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** Adds a key to an organisation; the text is in the result and nowhere else. `text`: one chosen by the operator. */
export async function addApiKey(
  db: Kysely<Schema>,
  options: {
    readonly organisationId: string;
    readonly role: Role;
    readonly now: number;
    readonly text?: string | null;
  },
): Promise<{ readonly id: string; readonly key: string }> {
  const fresh = newKeyText();
  const key = options.text ?? fresh.key;
  await db
    .insertInto("api_key")
    .values({
      id: fresh.id,
      organisation_id: options.organisationId,
      role: options.role,
      hash: hashOfKey(key),
      created_at: options.now,
      expires_at: null,
      last_used_at: null,
    })
    .execute();
  return { id: fresh.id, key };
}
