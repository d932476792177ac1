// Issues client ids (W6): unique for the life of the deployment, from blocks the store hands out.
// Numbers left in a block at a restart are lost, never reused.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";

/** How many ids one write to the store reserves (W6). */
export const CLIENT_ID_BLOCK = 1_000;
const SEQUENCE_NAME = "client_id";
const FIRST_CLIENT_ID = 1;

export interface ClientIds {
  /** The next client id. Rejects when a new block is needed and the store fails. */
  next(): Promise<number>;
}

export function createClientIds(db: Kysely<Schema>): ClientIds {
  let next = 0;
  let end = 0;
  let refill: Promise<void> | null = null;

  const fetchBlock = async (): Promise<void> => {
    const row = await db
      .insertInto("sequence")
      .values({ name: SEQUENCE_NAME, next: FIRST_CLIENT_ID + CLIENT_ID_BLOCK })
      .onConflict((conflict) =>
        conflict.column("name").doUpdateSet((eb) => ({ next: eb("sequence.next", "+", CLIENT_ID_BLOCK) })),
      )
      .returning("next")
      .executeTakeFirstOrThrow();
    end = Number(row.next); // PostgreSQL returns bigint as text
    next = end - CLIENT_ID_BLOCK;
  };

  return {
    async next() {
      while (next >= end) {
        refill ??= fetchBlock().finally(() => {
          refill = null;
        });
        await refill;
      }
      const clientId = next;
      next += 1;
      return clientId;
    },
  };
}
