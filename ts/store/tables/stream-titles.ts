// The migration 0031-stream-titles: titles and the customers' own ids of streams, and what finds them. Written by
// organisation/titles/: a former version, which knows nothing of them, leaves them alone.
import { type Kysely, PostgresAdapter, sql } from "kysely";

export interface StreamTitleColumns {
  /** For people; null for none. */
  title: string | null;
  /** The customer's own id of the stream, unique within the organisation among streams that are not deleted; null for
   *  none. */
  external_id: string | null;
  /** Both in lower case, each on a line, as a search compares them; null for neither. */
  found_by: string | null;
}

/** Which stream has an external id; it may have been deleted, and then any other stream may take the id. */
interface StreamExternalIdTable {
  organisation_id: string;
  external_id: string;
  stream_id: string;
}

/** Every end of `found_by`, cut to a length, of streams that are not deleted. */
interface StreamTextTable {
  readonly organisation_id: string;
  readonly word: string;
  readonly stream_id: string;
}

export interface StreamTitleTables {
  stream_external_id: StreamExternalIdTable;
  stream_text: StreamTextTable;
}

export async function streamTitles(db: Kysely<unknown>): Promise<void> {
  // Compared byte by byte, so that the words with a common beginning are neighbours.
  const bytewise = db.getExecutor().adapter instanceof PostgresAdapter ? sql`text collate "C"` : sql`text`;
  for (const column of ["title", "external_id", "found_by"]) {
    await db.schema.alterTable("stream").addColumn(column, "text").execute();
  }
  await db.schema
    .createTable("stream_external_id")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("external_id", "text", (column) => column.notNull())
    .addColumn("stream_id", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("stream_external_id_of", ["organisation_id", "external_id"])
    .execute();
  await db.schema
    .createTable("stream_text")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("word", bytewise, (column) => column.notNull())
    .addColumn("stream_id", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("stream_text_of", ["organisation_id", "word", "stream_id"])
    .execute();
}
