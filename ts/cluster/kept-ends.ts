// Ends of publishes that a node has to carry out when it is back, because it did not answer when they were requested.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";

export interface KeptEnd {
  readonly epoch: number;
  readonly clientId: number;
}

/** Stored once, however often it is requested. */
export async function keepEnd(db: Kysely<Schema>, { epoch, clientId }: KeptEnd): Promise<void> {
  await db
    .insertInto("kept_end")
    .values({ epoch, client_id: clientId })
    .onConflict((conflict) => conflict.column("client_id").doNothing())
    .execute();
}

/** Client ids of the publishes that the node has to end; each is returned only once. */
export async function takeKeptEnds(db: Kysely<Schema>, epoch: number): Promise<readonly number[]> {
  const rows = await db.deleteFrom("kept_end").where("epoch", "=", epoch).returning("client_id").execute();
  return rows.map(({ client_id }) => Number(client_id));
}
