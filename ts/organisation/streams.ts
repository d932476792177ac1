// Streams: named places one can publish to (M8–M12). Their states live and ended are set by the life of a publish.
import { randomUUID } from "node:crypto";
import { type Kysely, sql } from "kysely";
import { StoreFailed, UnknownStream } from "../errors.ts";
import type { OrganisationTable, Schema, StreamState, StreamTable } from "../store/schema.ts";
import { randomText } from "./key-text.ts";

/** Limits of M8: how many tags a stream has, and how long one may be, in characters. */
export const TAGS_LIMIT = 50;
export const TAG_LENGTH_LIMIT = 100;
/** How many streams one list returns: without a wish, and at most (M10). */
export const QUANTITY_DEFAULT = 50;
export const QUANTITY_LIMIT = 500;
/** Length of the part of a stream name after the organisation's hash (M12). */
const NAME_PART_LENGTH = 5;
/** How often a taken name is replaced by another: of 62^5 names, five in a row are taken only when nearly all are. */
const NAME_ATTEMPTS_LIMIT = 5;

/** Creates a stream with a fresh name `<organisation hash>-<5 characters>`. */
export async function createStream(
  db: Kysely<Schema>,
  organisation: Pick<OrganisationTable, "id" | "hash">,
  tags: readonly string[],
  now: number,
): Promise<StreamTable> {
  for (let attempt = 0; attempt < NAME_ATTEMPTS_LIMIT; attempt += 1) {
    const created = await db
      .insertInto("stream")
      .values({
        id: randomUUID(),
        organisation_id: organisation.id,
        name: `${organisation.hash}-${randomText(NAME_PART_LENGTH)}`,
        state: "created",
        tags: JSON.stringify(tags),
        created_at: now,
        updated_at: now,
      })
      .onConflict((conflict) => conflict.column("name").doNothing())
      .returningAll()
      .executeTakeFirst();
    if (created !== undefined) return created;
  }
  throw new StoreFailed(`no free stream name for organisation ${organisation.id}`);
}

/** Streams of an organisation, newest first, without deleted ones; only those in `state` and with all of `tags`. */
export async function listStreams(
  db: Kysely<Schema>,
  organisationId: string,
  filter: { readonly quantity: number; readonly state: StreamState | null; readonly tags: readonly string[] },
): Promise<readonly StreamTable[]> {
  let query = db
    .selectFrom("stream")
    .selectAll()
    .where("organisation_id", "=", organisationId)
    .where("state", "!=", "deleted");
  if (filter.state !== null) query = query.where("state", "=", filter.state);
  for (const tag of filter.tags) {
    query = query.where(sql<boolean>`exists (select 1 from json_each(stream.tags) where json_each.value = ${tag})`);
  }
  return await query.orderBy("created_at", "desc").orderBy("id").limit(filter.quantity).execute();
}

/** A stream of the organisation. Throws `UnknownStream`, also for another organisation's and for deleted ones. */
export async function findStream(db: Kysely<Schema>, organisationId: string, id: string): Promise<StreamTable> {
  if (id.includes("\0")) throw new UnknownStream(); // no id has one, and the store takes no NUL
  const stream = await db
    .selectFrom("stream")
    .selectAll()
    .where("id", "=", id)
    .where("organisation_id", "=", organisationId)
    .where("state", "!=", "deleted")
    .executeTakeFirst();
  if (stream === undefined) throw new UnknownStream();
  return stream;
}
