// Streams by their ids, for lists of something else that names them.
import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";

/** What people know a stream by. */
export interface NamedStream {
  readonly id: string;
  readonly name: string;
  readonly title: string | null;
}

/** Those streams of the organisation, by id, deleted ones too; at most as many as a page of a list has entries. */
export async function streamNamesOf(
  db: Kysely<Schema>,
  organisationId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, NamedStream>> {
  if (ids.length === 0) return new Map();
  const streams = await db
    .selectFrom("stream")
    .select(["id", "name", "title"])
    .where("organisation_id", "=", organisationId)
    .where("id", "in", [...new Set(ids)])
    .execute();
  return new Map(streams.map((stream) => [stream.id, stream]));
}
