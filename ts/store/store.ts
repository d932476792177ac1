// What an open store is, whichever database holds it.
import type { Kysely } from "kysely";
import type { StoreFailed } from "../errors.ts";
import type { Schema } from "./schema.ts";

/** The open store. */
export interface Store {
  readonly db: Kysely<Schema>;
  /** For signs of life: on PostgreSQL a connection of its own, so that no other statement is in front of them. */
  readonly lifeline: Kysely<Schema>;
  /** Of the same rows, for reads that must not delay what `db` does: a connection of its own, which changes nothing. */
  readonly reads: Kysely<Schema>;
  /** Finishes pending statements and releases the store. */
  close(): Promise<void>;
  /** Resolves if the store dies while it is open; nothing works after that. */
  readonly failed: Promise<StoreFailed>;
  /** Releases this service's node name in the database, and takes another. Rejects with `StoreFailed` when that is
   *  taken. */
  rename(node: string): Promise<void>;
}
