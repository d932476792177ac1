// Timelines in the store: one bounded row for each accepted publish, deleted with its publish.
import { type CompiledQuery, type Kysely, sql } from "kysely";
import type { Schema } from "../../store/schema.ts";
import { together } from "../../store/statements/together.ts";
import type { Moment } from "./moments.ts";

/** Rows written in one transaction. */
const AT_A_TIME = 25;

/** What the publish's own row does not contain. */
export interface KeptTimeline {
  readonly clientId: number;
  /** Epoch ms. */
  readonly requestedAt: number;
  /** Oldest first. */
  readonly moments: readonly Moment[];
}

/** A publish without a row of its own gets no timeline either. */
export async function keepTimelines(db: Kysely<Schema>, timelines: readonly KeptTimeline[]): Promise<void> {
  for (let at = 0; at < timelines.length; at += AT_A_TIME) {
    await together(
      db,
      timelines.slice(at, at + AT_A_TIME).map((timeline) => upsert(db, timeline)),
    );
  }
}

function upsert(db: Kysely<Schema>, { clientId, ...kept }: KeptTimeline): CompiledQuery {
  return sql`
    insert into publish_timeline (client_id, kept)
    select client_id, cast(${JSON.stringify(kept)} as text) from publish where client_id = ${clientId}
    on conflict (client_id) do update set kept = excluded.kept
  `.compile(db);
}

/** Null when none is stored, as for publishes from before migration 0016. */
export async function readKept(db: Kysely<Schema>, clientId: number): Promise<KeptTimeline | null> {
  const row = await db
    .selectFrom("publish_timeline")
    .select("kept")
    .where("client_id", "=", clientId)
    .executeTakeFirst();
  return row === undefined ? null : { clientId, ...(JSON.parse(row.kept) as Omit<KeptTimeline, "clientId">) };
}
