// What finds a stream by its title and its external id: the rows of stream_text and stream_external_id.
import { type Kysely, sql } from "kysely";
import type { Schema, StreamTable } from "../../store/schema.ts";
import { WORD_LIMIT } from "../../store/tables/stream-lists.ts";

/** What finds a stream by its texts is removed with it; the row itself keeps them. */
export async function forgetTexts(
  trx: Kysely<Schema>,
  stream: Pick<StreamTable, "id" | "organisation_id" | "found_by" | "external_id">,
): Promise<void> {
  await removeWords(trx, stream);
  await release(trx, stream);
}

/** Frees the external id for other streams. */
export async function release(
  trx: Kysely<Schema>,
  { id, organisation_id, external_id }: Pick<StreamTable, "id" | "organisation_id" | "external_id">,
): Promise<void> {
  if (external_id === null) return;
  await trx
    .deleteFrom("stream_external_id")
    .where("organisation_id", "=", organisation_id)
    .where("external_id", "=", external_id)
    .where("stream_id", "=", id)
    .execute();
}

/** The words by which a search finds the stream. */
export async function addWords(
  trx: Kysely<Schema>,
  { id, organisation_id, found_by }: Pick<StreamTable, "id" | "organisation_id" | "found_by">,
): Promise<void> {
  if (found_by === null) return;
  await sql`
    insert into stream_text (organisation_id, word, stream_id)
    select cast(${organisation_id} as text), ends.value, cast(${id} as text)
    from json_each(cast(${JSON.stringify(endsOf(found_by))} as text)) as ends where true on conflict do nothing
  `.execute(trx);
}

export async function removeWords(
  trx: Kysely<Schema>,
  { id, organisation_id, found_by }: Pick<StreamTable, "id" | "organisation_id" | "found_by">,
): Promise<void> {
  if (found_by === null) return;
  await trx
    .deleteFrom("stream_text")
    .where("organisation_id", "=", organisation_id)
    .where("stream_id", "=", id)
    .where("word", "in", endsOf(found_by))
    .execute();
}

/** Every end of the text, cut like the words of names and tags. */
function endsOf(text: string): readonly string[] {
  const characters = [...text];
  return [...new Set(characters.map((_, at) => characters.slice(at, at + WORD_LIMIT).join("")))];
}
