// json_each for PostgreSQL: statements and triggers call it on a text, which PostgreSQL defines only for json.
import { type Kysely, sql } from "kysely";

export async function addJsonEach<DB>(db: Kysely<DB>): Promise<void> {
  await sql`create or replace function json_each(list text) returns table (value text) language sql immutable
    as 'select json_array_elements_text(list::json)'`.execute(db);
}
