// Ends of publishes that a node is to bring about when it is back: it did not answer when somebody wanted them.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";

export interface KeptEnd {
  readonly epoch: number;
  readonly clientId: number;
}

/** Kept once, however often it is asked for. */
export async function keepEnd(db: Kysely<Schema>, { epoch, clientId }: KeptEnd): Promise<void> {
  await db
    .insertInto("kept_end")
    .values({ epoch, client_id: clientId })
    .onConflict((conflict) => conflict.column("client_id").doNothing())
    .execute();
}

/** Client ids of the publishes that the node is to end; told once. */
export async function takeKeptEnds(db: Kysely<Schema>, epoch: number): Promise<readonly number[]> {
  const rows = await db.deleteFrom("kept_end").where("epoch", "=", epoch).returning("client_id").execute();
  return rows.map(({ client_id }) => Number(client_id));
}
