// Whether a key file is the one with which a store's secrets are sealed: checked before a store is moved or restored.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { purposeOf } from "./rotation.ts";

/** Throws `StoreUnavailable` when `box` cannot open the store's token keys, which every store has from its first start.
 *  One key file seals all secrets of a store. */
export async function requireKeyOf(db: Kysely<Schema>, box: SecretBox): Promise<void> {
  const rows = await db.selectFrom("token_key").select(["kid", "private_key"]).execute();
  for (const { kid, private_key } of rows) if (private_key !== "") box.open(private_key, purposeOf(kid));
}
