// Whether a key file is the one that a store's secrets are sealed with: asked before a store is moved or put back.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { purposeOf } from "./rotation.ts";

/** Throws `StoreUnavailable` when `box` does not open the token keys of the store, which every store has from its first
 *  start on. One key file seals all secrets of a store. */
export async function requireKeyOf(db: Kysely<Schema>, box: SecretBox): Promise<void> {
  const rows = await db.selectFrom("token_key").select(["kid", "private_key"]).execute();
  for (const { kid, private_key } of rows) if (private_key !== "") box.open(private_key, purposeOf(kid));
}
