// Bytes sent to players on this node for publishes that run on others: added to the publish's own bytes_out (W8) in the
// store, so that each byte counts once, where it was sent to a player.
import { type Kysely, sql } from "kysely";
import type { PullStatus } from "../media/plays.ts";
import type { Media } from "../media.ts";
import type { Schema } from "../store/schema.ts";
import { together } from "../store/together.ts";
import { dayOf } from "./daily-bytes.ts";

type Counted = Pick<PullStatus, "clientId" | "bytesOut">;

export interface PulledBytes {
  /** Writes what was added since the last call. Rejects with `StoreFailed`; the next call then includes it. */
  record(): Promise<void>;
  /** A pull has ended with these counters. */
  ended(pull: Counted): Promise<void>;
}

export function createPulledBytes(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "pulls">;
  readonly clock: { now(): number };
}): PulledBytes {
  const { db, media, clock } = deps;
  /** By client id: bytes already in the store. */
  const written = new Map<number, number>();

  async function write({ clientId, bytesOut }: Counted): Promise<void> {
    const before = written.get(clientId) ?? 0;
    if (bytesOut === before) return;
    written.set(clientId, bytesOut);
    try {
      await together(db, addition(db, clientId, bytesOut - before, clock.now()));
    } catch (error) {
      written.set(clientId, before);
      throw error;
    }
  }

  return {
    async record() {
      for (const pull of media().pulls()) await write(pull);
    },
    async ended(pull) {
      await write(pull);
      written.delete(pull.clientId);
    },
  };
}

/** Only while the publish runs: its publish_done reports what was counted by then. */
function addition(db: Kysely<Schema>, clientId: number, bytes: number, now: number) {
  return [
    sql`
      insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
      select stream_id, cast(${dayOf(now)} as text), organisation_id, 0, cast(${bytes} as bigint)
      from publish where client_id = ${clientId} and state = 'live'
      on conflict (stream_id, day) do update set bytes_out = "usage".bytes_out + excluded.bytes_out
    `.compile(db),
    db
      .updateTable("publish")
      .set((eb) => ({ bytes_elsewhere: eb("bytes_elsewhere", "+", bytes) }))
      .where("client_id", "=", clientId)
      .where("state", "=", "live")
      .compile(),
  ];
}
