// API keys: issued once, stored as SHA-256, rotated with an overlap in which both are valid, revoked
// immediately (M3, M15).
import { createHash, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { BadApiKey, InvalidValue, UnknownRecord } from "../errors.ts";
import type { ApiKeyTable, OrganisationTable, Schema } from "../store/schema.ts";
import { LastUses } from "../store/statements/last-uses.ts";
import { checkRoom } from "../store/table-bounds.ts";
import type { Role } from "../store/tables/roles.ts";
import { newKeyText } from "./key-text.ts";

/** Compared with when a key is unknown, so that both kinds of refusal do the same work (M3). */
const NO_HASH = "0".repeat(64);
/** Most valid keys of one organisation. */
export const KEYS_LIMIT = 100;
/** How long a rotated key stays valid beside its successor, ms. */
export const ROTATION_MS = 86_400_000;

/** A valid key with its organisation. */
export interface KnownKey extends Pick<ApiKeyTable, "id" | "role" | "scope_tag"> {
  readonly organisation: OrganisationTable;
}

export interface ApiKeys {
  /** The key with this text. Rejects with `BadApiKey`, also for null and for an expired or revoked key. */
  find(text: string | null): Promise<KnownKey>;
  /** Records the use of the key, at most once a minute. */
  used(id: string): void;
}

export function createApiKeys(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Logger;
}): ApiKeys {
  const { db, clock, log } = deps;
  /** When this process last recorded the use of a key, by its id; bounded by the number of keys. */
  const uses = new LastUses();
  /** Needed for every request, so the statement is built once. */
  let byHash: ReturnType<typeof keyQuery> | undefined;

  return {
    async find(text) {
      const hash = hashOfKey(text ?? "");
      byHash ??= keyQuery(db);
      const asked: typeof byHash = { ...byHash, parameters: [hash] };
      const [row] = (await db.executeQuery(asked)).rows;
      const same = timingSafeEqual(Buffer.from(hash), Buffer.from(row?.key_hash ?? NO_HASH));
      if (row === undefined || !same) throw new BadApiKey();
      const { key_id, key_role, key_hash, key_scope_tag, key_expires_at, key_revoked_at, ...organisation } = row;
      if (!lives({ expires_at: key_expires_at, revoked_at: key_revoked_at }, clock.now())) throw new BadApiKey();
      return { id: key_id, role: key_role, scope_tag: key_scope_tag, organisation };
    },
    used(id) {
      const now = clock.now();
      if (!uses.take(id, now)) return;
      db.updateTable("api_key")
        .set({ last_used_at: now })
        .where("id", "=", id)
        .execute()
        .catch((err: unknown) => log.warn({ err, keyId: id }, "last use of an API key not recorded"));
    },
  };
}

/** A key and its organisation by the hash of the key. */
function keyQuery(db: Kysely<Schema>) {
  return db
    .selectFrom("api_key")
    .innerJoin("organisation", "organisation.id", "api_key.organisation_id")
    .selectAll("organisation")
    .select([
      "api_key.id as key_id",
      "api_key.role as key_role",
      "api_key.hash as key_hash",
      "api_key.scope_tag as key_scope_tag",
      "api_key.expires_at as key_expires_at",
      "api_key.revoked_at as key_revoked_at",
    ])
    .where("api_key.hash", "=", "")
    .compile();
}

function lives(key: Pick<ApiKeyTable, "expires_at" | "revoked_at">, now: number): boolean {
  return key.revoked_at === null && (key.expires_at === null || Number(key.expires_at) > now);
}

/** SHA-256 of a whole key, lower-case hex: what the store keeps of it. */
export function hashOfKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** Adds a key to an organisation; its text is only in the result. `text`: one chosen by the operator. */
export async function addApiKey(
  db: Kysely<Schema>,
  options: {
    readonly organisationId: string;
    readonly role: Role;
    readonly now: number;
    readonly text?: string | null;
    readonly label?: string | null;
    readonly scopeTag?: string | null;
    /** Epoch ms; null: never. */
    readonly expiresAt?: number | null;
  },
): Promise<{ readonly id: string; readonly key: string; readonly row: ApiKeyTable }> {
  const fresh = newKeyText();
  const key = options.text ?? fresh.key;
  const row = await db
    .insertInto("api_key")
    .values({
      id: fresh.id,
      organisation_id: options.organisationId,
      role: options.role,
      hash: hashOfKey(key),
      label: options.label ?? null,
      scope_tag: options.scopeTag ?? null,
      created_at: options.now,
      expires_at: options.expiresAt ?? null,
      last_used_at: null,
      revoked_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { id: fresh.id, key, row };
}

/** The valid keys of an organisation, oldest first. */
export async function listApiKeys(db: Kysely<Schema>, organisationId: string, now: number): Promise<ApiKeyTable[]> {
  const rows = await db
    .selectFrom("api_key")
    .selectAll()
    .where("organisation_id", "=", organisationId)
    .where("revoked_at", "is", null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
  return rows.filter((row) => lives(row, now));
}

/** Throws `InvalidValue` when an organisation already has the most valid keys allowed. */
export async function checkRoomForKey(db: Kysely<Schema>, organisationId: string, now: number): Promise<void> {
  await checkRoom(db, organisationId, "api_key", "key");
  const living = await listApiKeys(db, organisationId, now);
  if (living.length >= KEYS_LIMIT) throw new InvalidValue("key", `exceeds the limit of ${KEYS_LIMIT} live keys`);
}

/** Creates a successor with the same role, scope, label and expiry; the old key stays valid for `ROTATION_MS`, unless it
 *  expires earlier. Rejects with `UnknownRecord`. */
export async function rotateApiKey(
  db: Kysely<Schema>,
  organisationId: string,
  id: string,
  now: number,
): Promise<{ readonly key: string; readonly row: ApiKeyTable; readonly former: ApiKeyTable }> {
  const old = await findApiKey(db, organisationId, id, now);
  await checkRoomForKey(db, organisationId, now);
  const { key, row } = await addApiKey(db, {
    organisationId,
    now,
    role: old.role,
    label: old.label,
    scopeTag: old.scope_tag,
    expiresAt: old.expires_at === null ? null : Number(old.expires_at),
  });
  const until = Math.min(
    now + ROTATION_MS,
    old.expires_at === null ? Number.POSITIVE_INFINITY : Number(old.expires_at),
  );
  const former = await db
    .updateTable("api_key")
    .set({ expires_at: until })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { key, row, former };
}

/** Revokes a key immediately. Rejects with `UnknownRecord`, or with `InvalidValue` when no key would be left
 *  with which to administrate. */
export async function revokeApiKey(
  db: Kysely<Schema>,
  organisationId: string,
  id: string,
  now: number,
): Promise<ApiKeyTable> {
  const key = await findApiKey(db, organisationId, id, now);
  const others = (await listApiKeys(db, organisationId, now)).filter(
    (other) => other.id !== id && administrates(other),
  );
  if (administrates(key) && others.length === 0) throw new InvalidValue("id", "is the last administrator key");
  return await db
    .updateTable("api_key")
    .set({ revoked_at: now })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Whether the key administrates the whole organisation, without expiry. */
function administrates(key: Pick<ApiKeyTable, "role" | "scope_tag" | "expires_at">): boolean {
  return key.role === "administrator" && key.scope_tag === null && key.expires_at === null;
}

async function findApiKey(db: Kysely<Schema>, organisationId: string, id: string, now: number): Promise<ApiKeyTable> {
  if (id.includes("\0")) throw new UnknownRecord("API key");
  const row = await db
    .selectFrom("api_key")
    .selectAll()
    .where("id", "=", id)
    .where("organisation_id", "=", organisationId)
    .executeTakeFirst();
  if (row === undefined || !lives(row, now)) throw new UnknownRecord("API key");
  return row;
}
