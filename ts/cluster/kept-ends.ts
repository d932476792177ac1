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

/** Calls `end` for each publish that the node has to end. An end is forgotten afterwards: what is carried out twice does no
 *  harm, and what was deleted by a statement whose answer was lost would never be carried out. */
export async function carryOutKeptEnds(
  db: Kysely<Schema>,
  epoch: number,
  end: (kept: Pick<KeptEnd, "clientId" | "ending">) => void,
): Promise<void> {
  const kept = await db.selectFrom("kept_end").select(["client_id", "ending"]).where("epoch", "=", epoch).execute();
  if (kept.length === 0) return;
  for (const { client_id, ending } of kept) end({ clientId: Number(client_id), ending });
  const ids = kept.map(({ client_id }) => client_id);
  await db.deleteFrom("kept_end").where("client_id", "in", ids).execute();
}
