// The secrets with which webhook calls are signed (W9): created when first needed, shown once, and for a day after a
// rotation the former one signs as well, also when another rotation follows. Stored encrypted.
import { randomBytes, randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import type { Schema } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";

/** Random bytes of a secret; Standard Webhooks requires 24 to 64. */
const SECRET_BYTES = 32;
const PREFIX = "whsec_";
/** How long the former secret is also used for signing, ms (M7). */
export const ROTATION_MS = 24 * 3_600_000;
/** Most former secrets that sign along: each adds 47 bytes to the signature of every call. */
const FORMER_LIMIT = 8;

/** Those of the webhook, and those of the second one, which gets copies. */
export type SecretTableName = "webhook_secret" | "webhook_copy_secret";

export interface WebhookSecrets {
  /** Creates a secret unless there is one. */
  ensure(organisationId: string): Promise<void>;
  isSet(organisationId: string): Promise<boolean>;
  /** Creates a new current secret in the caller's transaction and returns its text `whsec_…`, which is never shown
   *  again. Rejects with `InvalidValue` while too many former ones still sign. */
  rotate(trx: Kysely<Schema>, organisationId: string): Promise<string>;
  /** The keys to sign with, the current one first; creates one if there is none. */
  keys(organisationId: string): Promise<readonly Uint8Array[]>;
}

export function createWebhookSecrets(deps: {
  readonly db: Kysely<Schema>;
  readonly box: SecretBox;
  readonly clock: { now(): number };
  /** By default those of the webhook. */
  readonly table?: SecretTableName;
}): WebhookSecrets {
  const { db, box, clock, table = "webhook_secret" } = deps;

  async function insert(into: Kysely<Schema>, organisationId: string): Promise<string> {
    const id = randomUUID();
    const text = PREFIX + randomBytes(SECRET_BYTES).toString("base64");
    await into
      .insertInto(table)
      .values({
        id,
        organisation_id: organisationId,
        sealed: box.seal(text, purposeOf(table, id)),
        created_at: clock.now(),
        expires_at: null,
      })
      .onConflict((conflict) => conflict.doNothing()) // a concurrent request may have created the current one
      .execute();
    return text;
  }

  async function read(organisationId: string) {
    return await db
      .selectFrom(table)
      .select(["id", "sealed", "expires_at"])
      .where("organisation_id", "=", organisationId)
      .where((eb) => eb.or([eb("expires_at", "is", null), eb("expires_at", ">", clock.now())]))
      .execute();
  }

  async function isSet(organisationId: string): Promise<boolean> {
    const current = await db
      .selectFrom(table)
      .select("id")
      .where("organisation_id", "=", organisationId)
      .where("expires_at", "is", null)
      .executeTakeFirst();
    return current !== undefined;
  }

  async function ensure(organisationId: string): Promise<void> {
    if (!(await isSet(organisationId))) await insert(db, organisationId);
  }

  return {
    ensure,
    isSet,
    async rotate(trx, organisationId) {
      const now = clock.now();
      // Concurrent rotations wait for each other here: the second retires the first one's secret.
      await trx
        .updateTable("organisation")
        .set({ updated_at: now })
        .where("id", "=", organisationId)
        .executeTakeFirstOrThrow();
      await trx
        .deleteFrom(table)
        .where("organisation_id", "=", organisationId)
        .where("expires_at", "<=", now)
        .execute();
      const former = await trx
        .selectFrom(table)
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .where("organisation_id", "=", organisationId)
        .where("expires_at", "is not", null)
        .executeTakeFirstOrThrow();
      if (Number(former.count) >= FORMER_LIMIT) {
        throw new InvalidValue(
          "secret",
          `was rotated ${FORMER_LIMIT} times within a day; wait until the first expires`,
        );
      }
      await trx
        .updateTable(table)
        .set({ expires_at: now + ROTATION_MS })
        .where("organisation_id", "=", organisationId)
        .where("expires_at", "is", null)
        .execute();
      return await insert(trx, organisationId);
    },
    async keys(organisationId) {
      let rows = await read(organisationId);
      if (rows.length === 0) {
        await ensure(organisationId);
        rows = await read(organisationId);
      }
      const validUntil = (row: (typeof rows)[number]) => Number(row.expires_at ?? Number.POSITIVE_INFINITY);
      return rows
        .toSorted((one, other) => validUntil(other) - validUntil(one))
        .map(({ id, sealed }) => keyOf(box.open(sealed, purposeOf(table, id))));
    },
  };
}

/** `whsec_…` → the bytes of the key. */
function keyOf(text: string): Uint8Array {
  return Buffer.from(text.slice(PREFIX.length), "base64");
}

/** What a secret is sealed for: one that was copied to the other table cannot be opened. */
function purposeOf(table: SecretTableName, id: string): string {
  return table === "webhook_secret" ? `webhook secret ${id}` : `secret of webhook copies ${id}`;
}
