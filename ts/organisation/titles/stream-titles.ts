// The title of a stream, for people, and the customer's own id of it (M9a): what they may contain, that an id is unique,
// and what a search finds them by.
import { type Kysely, sql } from "kysely";
import { InvalidValue, NotUnique, UnknownStream } from "../../errors.ts";
import type { Schema, StreamTable } from "../../store/schema.ts";
import { createStream, hasTag } from "../streams.ts";
import { addWords, release, removeWords } from "./found-by.ts";

/** Longest title and external id, characters. */
export const TITLE_LIMIT = 200;
export const EXTERNAL_ID_LIMIT = 128;

/** The texts that change; null for none. */
export interface StreamTexts {
  readonly title?: string | null;
  readonly externalId?: string | null;
}

/** A title in the form in which it is stored; null when none was given. Throws `InvalidValue`. */
export function readTitle(given: string | null): string | null {
  const title = shortened("title", given, TITLE_LIMIT);
  // Of other invisible characters, emoji and some scripts consist.
  if (title !== null && /[\p{Cc}\p{Zl}\p{Zp}]/u.test(title))
    throw new InvalidValue("title", "must not contain line breaks or control characters");
  return title;
}

/** An external id in the form in which it is stored; null when none was given. Throws `InvalidValue`. */
export function readExternalId(given: string | null): string | null {
  const id = shortened("external_id", given, EXTERNAL_ID_LIMIT);
  if (id !== null && /[\p{C}\p{Zl}\p{Zp}]/u.test(id))
    throw new InvalidValue("external_id", "must be printable characters");
  return id;
}

function shortened(parameter: string, given: string | null, most: number): string | null {
  const text = given?.trim() ?? "";
  if ([...text].length > most) throw new InvalidValue(parameter, `must not be longer than ${most} characters`);
  return text === "" ? null : text;
}

/** Those of a new stream, for the audit log. */
export function givenTexts({ title, external_id }: Pick<StreamTable, "title" | "external_id">) {
  return { ...(title !== null && { title }), ...(external_id !== null && { external_id }) };
}

/** Creates a stream with title and external id, like `createStream` and `setTexts`. */
export async function createTitledStream(
  trx: Kysely<Schema>,
  organisation: Parameters<typeof createStream>[1],
  given: Parameters<typeof createStream>[2] & Required<StreamTexts> & { readonly seenBy: string | null },
): Promise<StreamTable> {
  const stream = await createStream(trx, organisation, given);
  const isPlain = given.title === null && given.externalId === null;
  return isPlain ? stream : await setTexts(trx, stream, given, given);
}

/** Sets title and external id, as read by the functions above, in the transaction `trx`. Throws `NotUnique` when another
 *  stream has the external id, and names that stream if it has the tag `seenBy`; null: whatever its tags. */
export async function setTexts(
  trx: Kysely<Schema>,
  { id, organisation_id: organisationId }: Pick<StreamTable, "id" | "organisation_id">,
  texts: StreamTexts,
  { seenBy, now }: { readonly seenBy: string | null; readonly now: number },
): Promise<StreamTable> {
  if (!trx.isTransaction) throw new TypeError("setTexts needs a transaction");
  const former = await trx
    .selectFrom("stream")
    .select(["title", "external_id", "found_by"])
    .where("id", "=", id)
    .where("state", "!=", "deleted")
    .executeTakeFirst();
  if (former === undefined) throw new UnknownStream();
  const { title = former.title, externalId = former.external_id } = texts;
  if (externalId !== former.external_id) {
    if (externalId !== null) await claim(trx, { organisationId, streamId: id, externalId, seenBy });
    await release(trx, { id, organisation_id: organisationId, external_id: former.external_id });
  }
  const lines = [title, externalId].filter((text) => text !== null);
  const foundBy = lines.length === 0 ? null : lines.join("\n").toLowerCase();
  if (foundBy !== former.found_by) {
    await removeWords(trx, { id, organisation_id: organisationId, found_by: former.found_by });
    await addWords(trx, { id, organisation_id: organisationId, found_by: foundBy });
  }
  return await trx
    .updateTable("stream")
    .set({ title, external_id: externalId, found_by: foundBy, updated_at: now })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

interface Claim {
  readonly organisationId: string;
  readonly streamId: string;
  readonly externalId: string;
  readonly seenBy: string | null;
}

/** The primary key lets one of several claims win; what a deleted stream holds is free (a former version releases
 *  nothing). */
async function claim(trx: Kysely<Schema>, { organisationId, streamId, externalId, seenBy }: Claim): Promise<void> {
  const claimed = await trx
    .insertInto("stream_external_id")
    .values({ organisation_id: organisationId, external_id: externalId, stream_id: streamId })
    .onConflict((conflict) =>
      conflict
        .columns(["organisation_id", "external_id"])
        .doUpdateSet({ stream_id: streamId })
        .where(
          sql<boolean>`exists (select 1 from stream where stream.id = stream_external_id.stream_id and state = 'deleted')`,
        ),
    )
    .returning("stream_id")
    .executeTakeFirst();
  if (claimed !== undefined) return;
  let other = trx
    .selectFrom("stream_external_id")
    .innerJoin("stream", "stream.id", "stream_external_id.stream_id")
    .select(["stream.id", "stream.name"])
    .where("stream_external_id.organisation_id", "=", organisationId)
    .where("stream_external_id.external_id", "=", externalId);
  if (seenBy !== null) other = other.where(hasTag(seenBy));
  const named = await other.executeTakeFirst();
  if (named === undefined) throw new NotUnique("external_id", "is that of another stream");
  throw new NotUnique("external_id", `is that of the stream ${named.name} (${named.id})`, named.id);
}
