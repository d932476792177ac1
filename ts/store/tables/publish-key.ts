// The columns of migration 0029: whether publishes of a stream need its key, and what renews the key.
import type { Kysely } from "kysely";

export interface PublishKeyColumns {
  /** 0 or 1; null: the organisation's setting applies. */
  publish_key: number | null;
  /** Random text that the key is derived from; null until it is renewed for the first time. */
  key_salt: string | null;
}

export async function publishKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("stream").addColumn("publish_key", "integer").execute();
  await db.schema.alterTable("stream").addColumn("key_salt", "text").execute();
}
