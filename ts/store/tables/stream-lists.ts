// What lists, searches and counts of streams read instead of all streams of an organisation: their tags, the beginnings
// of words in their names and tags, and how many are in each state. Maintained by triggers, whoever writes the streams.
import { type Kysely, PostgresAdapter, sql } from "kysely";
import { addJsonEach } from "./json-each.ts";
import { countedAdded, countedBy, SHARD } from "./shards.ts";

export type StreamState = "created" | "live" | "ended" | "locked" | "deleted";

/** The tags of streams that are not deleted. */
interface StreamTagTable {
  readonly organisation_id: string;
  readonly tag: string;
  /** The stream's created_at with its sign reversed: in ascending order the newest stream is first. */
  readonly age: number;
  readonly stream_id: string;
}

/** The beginnings of words in names and tags of streams that are not deleted, in lower case. */
interface StreamWordTable {
  readonly organisation_id: string;
  readonly word: string;
  readonly stream_id: string;
}

/** How many streams of an organisation are in a state, in shards. */
interface StreamCountTable {
  readonly organisation_id: string;
  readonly state: StreamState;
  readonly shard: number;
  readonly streams: number;
}

export interface StreamListTables {
  stream_tag: StreamTagTable;
  stream_word: StreamWordTable;
  stream_count: StreamCountTable;
}

/** Words are indexed by their first characters, and only those that begin in the first characters of a tag: bounds on
 *  what one stream takes. */
export const WORD_LIMIT = 32;
/** Characters after which a word of a tag begins. */
const SEPARATORS = [" ", "-", "_", ".", ",", ":", ";", "/", "#", "@", "+", "=", "|", "(", "["];
/** Of a stream name every end is indexed, without those that begin within the organisation's hash and its hyphen. */
const HASH_LENGTH = 6;

const POSITIONS = `json_each('[${Array.from({ length: WORD_LIMIT }, (_, at) => at + 1).join()}]') as place`;
/** The same, faster. */
const POSTGRES_POSITIONS = `generate_series(1, ${WORD_LIMIT}) as place(value)`;
const AT = "cast(place.value as integer)";

/** The tables that the triggers write. */
export const STREAM_LIST_TABLES: readonly string[] = ["stream_tag", "stream_word", "stream_count"];

/** Migration 0024-stream-lists. */
export async function streamLists(db: Kysely<unknown>): Promise<void> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  if (isPostgres) await addJsonEach(db);
  // Compared byte by byte, so that the words with a common beginning are neighbours.
  const bytewise = isPostgres ? sql`text collate "C"` : sql`text`;
  await db.schema
    .createTable("stream_tag")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("tag", "text", (column) => column.notNull())
    .addColumn("age", "bigint", (column) => column.notNull())
    .addColumn("stream_id", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("stream_tag_newest", ["organisation_id", "tag", "age", "stream_id"])
    .execute();
  await db.schema
    .createTable("stream_word")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("word", bytewise, (column) => column.notNull())
    .addColumn("stream_id", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("stream_word_of", ["organisation_id", "word", "stream_id"])
    .execute();
  await db.schema
    .createTable("stream_count")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("shard", "integer", (column) => column.notNull())
    .addColumn("streams", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("stream_count_of", ["organisation_id", "state", "shard"])
    .execute();
  const listed = "where stream.state <> 'deleted'";
  for (const statement of [
    `create index stream_listed on stream (organisation_id, created_at desc, id) where state <> 'deleted'`,
    `create index stream_of_state on stream (organisation_id, state, created_at desc, id)`,
    insertTags("stream", "stream,", listed),
    insertNameEnds("stream", "stream,", listed),
    insertTagWords("stream", "stream,", listed),
    `insert into stream_count (organisation_id, state, shard, streams)
     select organisation_id, state, 0, count(*) from stream group by organisation_id, state`,
    ...(isPostgres ? POSTGRES_TRIGGERS : LIBSQL_TRIGGERS),
  ]) {
    await sql.raw(isPostgres ? statement.replaceAll(POSITIONS, POSTGRES_POSITIONS) : statement).execute(db);
  }
}

function insertTags(row: string, from: string, where: string): string {
  return `insert into stream_tag (organisation_id, tag, age, stream_id)
    select distinct ${row}.organisation_id, tag.value, -${row}.created_at, ${row}.id
    from ${from} json_each(${row}.tags) as tag ${where} on conflict do nothing`;
}

function insertNameEnds(row: string, from: string, where: string): string {
  return `insert into stream_word (organisation_id, word, stream_id)
    select distinct ${row}.organisation_id, lower(substr(${row}.name, ${AT}, ${WORD_LIMIT})), ${row}.id
    from ${from} ${POSITIONS} ${where} and ${AT} <= length(${row}.name) and (${AT} = 1 or ${AT} > ${HASH_LENGTH})
    on conflict do nothing`;
}

function insertTagWords(row: string, from: string, where: string): string {
  return `insert into stream_word (organisation_id, word, stream_id)
    select distinct ${row}.organisation_id, ${tagWord()}, ${row}.id
    from ${from} json_each(${row}.tags) as tag, ${POSITIONS} ${where} and ${beginsWord()}
    on conflict do nothing`;
}

function tagWord(): string {
  return `lower(substr(tag.value, ${AT}, ${WORD_LIMIT}))`;
}

function beginsWord(): string {
  const isSeparator = (at: string, not = "") =>
    `substr(tag.value, ${at}, 1) ${not} in (${SEPARATORS.map((each) => `'${each}'`).join()})`;
  return `${AT} <= length(tag.value)
    and (${AT} = 1 or (${isSeparator(`${AT} - 1`)} and ${isSeparator(AT, "not")}))`;
}

const NEW_ROW = ["new", "", "where new.state <> 'deleted'"] as const;
const ADD_TAGS = [insertTags(...NEW_ROW), insertTagWords(...NEW_ROW)];
const ADD_ALL = [...ADD_TAGS, insertNameEnds(...NEW_ROW)];
const REMOVE_TAGS = [
  `delete from stream_tag where organisation_id = old.organisation_id and age = -old.created_at
     and stream_id = old.id and tag in (select value from json_each(old.tags))`,
  `delete from stream_word where organisation_id = old.organisation_id and stream_id = old.id
     and word in (select ${tagWord()} from json_each(old.tags) as tag, ${POSITIONS} where ${beginsWord()})`,
];
/** Also of a name, whose row is never used again. */
const REMOVE_ALL = [
  ...REMOVE_TAGS,
  `delete from stream_word where organisation_id = old.organisation_id and stream_id = old.id
     and word in (select lower(substr(old.name, ${AT}, ${WORD_LIMIT})) from ${POSITIONS} where ${AT} <= length(old.name))`,
];
const count = (row: string, change: string) =>
  countedBy("stream_count", [`${row}.organisation_id`, `${row}.state`], { streams: change });
/** Tags may contain ends of the name, which removing the tags removes as well. */
const RETAGGED = [...REMOVE_TAGS, ...ADD_ALL];
const MOVED = [count("old", "-1"), count("new", "1")];

const block = (statements: readonly string[]) => statements.map((each) => `${each};`).join("\n");

const LIBSQL_TRIGGERS = [
  `create trigger stream_lists_added after insert on stream begin ${block([...ADD_ALL, count("new", "1")])} end`,
  `create trigger stream_lists_tagged after update of tags on stream when old.tags <> new.tags
   begin ${block(RETAGGED)} end`,
  `create trigger stream_lists_deleted after update of state on stream
   when new.state = 'deleted' and old.state <> 'deleted' begin ${block(REMOVE_ALL)} end`,
  `create trigger stream_lists_moved after update of state on stream when old.state <> new.state
   begin ${block(MOVED)} end`,
];

const POSTGRES_TRIGGERS = [
  `create function list_stream() returns trigger language plpgsql as $$
   begin
     if tg_op = 'INSERT' then ${block(ADD_ALL)}
     else
       if old.tags <> new.tags then ${block(RETAGGED)} end if;
       if old.state <> new.state then ${block(MOVED)} end if;
       if new.state = 'deleted' and old.state <> 'deleted' then ${block(REMOVE_ALL)} end if;
     end if;
     return null;
   end $$`.replaceAll(SHARD.libsql, SHARD.postgres),
  `create trigger stream_lists after insert or update of tags, state on stream
   for each row execute function list_stream()`,
  ...countedAdded("stream_count", "stream", { streams: "count(*)" }),
];
