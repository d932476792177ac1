// Ends of publishes that a node has to carry out when it is back, because it did not answer when they were requested.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";

export interface KeptEnd {
  readonly epoch: number;
  readonly clientId: number;
  /** Who asked for it, as `publish/ending` writes it; null when that is not known. */
  readonly ending: string | null;
}

/** Stored once, however often it is requested. */
export async function keepEnd(db: Kysely<Schema>, { epoch, clientId, ending }: KeptEnd): Promise<void> {
  await db
    .insertInto("kept_end")
    .values({ epoch, client_id: clientId, ending })
    .onConflict((conflict) => conflict.column("client_id").doNothing())
    .execute();
}

/** The publishes that the node has to end; each is returned only once. */
export async function takeKeptEnds(
  db: Kysely<Schema>,
  epoch: number,
): Promise<readonly Pick<KeptEnd, "clientId" | "ending">[]> {
  const kept = db.deleteFrom("kept_end").where("epoch", "=", epoch).returning(["client_id", "ending"]);
  return (await kept.execute()).map(({ client_id, ending }) => ({ clientId: Number(client_id), ending }));
}
