// Lists and counts of an organisation's streams (M10). One request looks at a bounded number of rows, whatever the
// organisation has: it follows an index, and where a filter leaves few of the rows in it, a page ends early.
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import type { OrganisationTable, Schema, StreamState, StreamTable } from "../../store/schema.ts";
import { isBehind } from "../../store/statements/newest-first.ts";
import { lastInWindow } from "../../store/statements/window.ts";
import { WORD_LIMIT } from "../../store/tables/stream-lists.ts";
import { hasTag } from "../streams.ts";

/** How many streams one list returns: by default, and at most (M10). */
export const QUANTITY_DEFAULT = 50;
export const QUANTITY_LIMIT = 500;
/** Streams that a request with a filter looks at. */
export const WINDOW = 5_000;
/** With more streams than this whose words begin with the text of a search, looking at the newest finds some soon. */
const COMMON = 2_000;
/** Streams looked up in one statement. */
const LOOKED_UP = 500;
/** The last character in the order of the index of words. */
const LAST_CHARACTER = "\u{10ffff}";

/** The position of a stream in the list; it may have been deleted. `live`: as it was listed. */
export interface StreamPosition {
  readonly createdAt: number;
  readonly id: string;
  readonly live: boolean;
}
type Behind = Pick<StreamPosition, "createdAt" | "id">;

/** Selects the streams of a list. */
export interface StreamFilter {
  readonly quantity: number;
  /** Only those after this stream in the order of the list. */
  readonly behind?: Behind | null;
  readonly state: StreamState | null;
  /** Excludes a state; applies in addition to `state`. */
  readonly notIn?: StreamState;
  /** Streams must have all of them. */
  readonly tags: readonly string[];
  /** Part of the name, a tag, the title or the external id, case-insensitive; null for any. */
  readonly search?: string | null;
  /** Only the stream with this external id; null for any. */
  readonly externalId?: string | null;
}

export interface StreamPage {
  readonly streams: readonly StreamTable[];
  /** Where a list continues that ended early; null when it is complete, or `streams` are as many as requested. */
  readonly rest: StreamPosition | null;
}

/** Whole rows of streams in the order of the list. */
type Rows = SelectQueryBuilder<Schema, "stream", StreamTable>;

/** The first rows along an index, to which filters apply, and the position of the last one if there are as many. */
interface Window {
  readonly rows: Rows;
  last(): Promise<{ readonly id: string; readonly created_at: number } | undefined>;
}

/** Streams of an organisation, newest first, excluding deleted ones. */
export async function listStreams(
  db: Kysely<Schema>,
  organisation: Pick<OrganisationTable, "id">,
  filter: StreamFilter,
): Promise<StreamPage> {
  const { tags, state, search = null, externalId = null, behind = null, quantity } = filter;
  const { id } = organisation;
  const [tag, ...further] = tags;
  if (externalId !== null) {
    return { streams: await lookedUp(db, await withExternalId(db, id, externalId), filter), rest: null };
  }
  // Few are live, so no window is needed.
  if (state === "live" || (tag === undefined && search === null)) {
    return { streams: await filtered(db, newest(db, id, state, behind), filter), rest: null };
  }
  if (tag !== undefined) {
    const isFiltered = further.length > 0 || search !== null || state !== null || filter.notIn !== undefined;
    const window = tagged(db, id, tag, behind, isFiltered ? WINDOW : quantity);
    return await windowed(db, window, { ...filter, tags: further });
  }
  const begun = await beginningWith(db, id, search ?? "");
  const titled = begun === null ? null : await titledLike(db, id, search ?? "");
  if (begun === null || titled === null) return await windowed(db, newestWindow(db, id, state, behind), filter);
  const near = await filtered(db, newestWindow(db, id, null, null).rows, { ...filter, quantity: WINDOW });
  const found = await lookedUp(db, [...new Set([...begun, ...titled, ...near.map((stream) => stream.id)])], filter);
  return { streams: found.slice(0, quantity), rest: null };
}

/** The same, live ones first. `behind` says whether its stream was listed as live. A stream that starts or ends between
 *  two pages may be on both or on neither. */
export async function listStreamsLiveFirst(
  db: Kysely<Schema>,
  organisation: Pick<OrganisationTable, "id">,
  filter: Omit<StreamFilter, "behind" | "notIn"> & { readonly behind: StreamPosition | null },
): Promise<StreamPage> {
  const { behind, state, quantity } = filter;
  const hasLive = (state === null || state === "live") && behind?.live !== false;
  const live = hasLive ? (await listStreams(db, organisation, { ...filter, state: "live" })).streams : [];
  if (state === "live" || live.length >= quantity) return { streams: live, rest: null };
  const part = { behind: behind?.live === false ? behind : null, quantity: quantity - live.length };
  const { streams, rest } = await listStreams(db, organisation, { ...filter, ...part, notIn: "live" });
  return { streams: [...live, ...streams], rest };
}

/** How many streams of each organisation are in each state. */
export async function countsOf(db: Kysely<Schema>, organisationIds: readonly string[]) {
  return await db
    .selectFrom("stream_count")
    .select((eb) => ["organisation_id", "state", eb.fn.sum<number>("streams").as("streams")])
    .where("organisation_id", "in", organisationIds)
    .groupBy(["organisation_id", "state"])
    .execute();
}

/** Those of the organisation's streams `ids` that have the tag. */
export async function streamsWithTag(
  db: Kysely<Schema>,
  organisationId: string,
  tag: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let at = 0; at < ids.length; at += LOOKED_UP) {
    const rows = await db
      .selectFrom("stream")
      .select("id")
      .where("id", "in", ids.slice(at, at + LOOKED_UP))
      .where("organisation_id", "=", organisationId)
      .where(hasTag(tag))
      .execute();
    for (const { id } of rows) found.add(id);
  }
  return found;
}

/** The streams of the organisation behind a position. */
function newest(db: Kysely<Schema>, organisationId: string, state: StreamState | null, behind: Behind | null): Rows {
  let rows = db.selectFrom("stream").selectAll("stream").where("organisation_id", "=", organisationId);
  // Literals, not parameters: partial indexes are not used with a parameter.
  if (state === null) rows = rows.where(sql<boolean>`state <> 'deleted'`);
  else if (state === "live") rows = rows.where(sql<boolean>`state = 'live'`);
  else rows = rows.where("state", "=", state);
  if (behind !== null) rows = rows.where(isBehind("created_at", behind.createdAt, behind.id));
  return rows.orderBy("created_at", "desc").orderBy("id");
}

function newestWindow(
  db: Kysely<Schema>,
  organisationId: string,
  state: StreamState | null,
  behind: Behind | null,
): Window {
  const rows = newest(db, organisationId, state, behind);
  const positions = rows.clearSelect().select(["id", "created_at"]);
  return {
    rows: rows.limit(WINDOW),
    last: () => lastInWindow(positions, WINDOW),
  };
}

/** The first `most` streams with a tag. */
function tagged(db: Kysely<Schema>, organisationId: string, tag: string, behind: Behind | null, most: number): Window {
  let positions = db
    .selectFrom("stream_tag")
    .select(["stream_id", "age"])
    .where("organisation_id", "=", organisationId)
    .where("tag", "=", tag);
  if (behind !== null)
    positions = positions.where(sql<boolean>`(age, stream_id) > (${-behind.createdAt}, ${behind.id})`);
  positions = positions.orderBy("age").orderBy("stream_id");
  const rows = db
    .selectFrom(positions.limit(most).as("near"))
    .innerJoin("stream", "stream.id", "near.stream_id")
    .selectAll("stream");
  return {
    rows: rows as Rows,
    async last() {
      const position = await lastInWindow(positions, most);
      return position && { id: position.stream_id, created_at: -position.age };
    },
  };
}

/** The streams among `rows` that pass the filters. */
async function filtered(db: Kysely<Schema>, rows: Rows, filter: StreamFilter): Promise<readonly StreamTable[]> {
  const { tags, state, notIn, search = null, quantity } = filter;
  let query = db.selectFrom(rows.as("listed")).selectAll("listed").where("listed.state", "!=", "deleted");
  if (state !== null) query = query.where("listed.state", "=", state);
  if (notIn !== undefined) query = query.where("listed.state", "<>", notIn);
  for (const tag of tags) query = query.where(hasTag(tag, "listed"));
  if (search !== null) query = query.where(isLike(search));
  return await query.orderBy("listed.created_at", "desc").orderBy("listed.id").limit(quantity).execute();
}

/** The same for a window: the list continues behind it, unless it is the last one. */
async function windowed(db: Kysely<Schema>, window: Window, filter: StreamFilter): Promise<StreamPage> {
  const streams = await filtered(db, window.rows, filter);
  if (streams.length >= filter.quantity) return { streams, rest: null };
  const last = await window.last();
  return {
    streams,
    rest: last === undefined ? null : { createdAt: Number(last.created_at), id: last.id, live: false },
  };
}

/** Ids of the streams with a word that begins like the text; null when they are too many. */
async function beginningWith(
  db: Kysely<Schema>,
  organisationId: string,
  search: string,
): Promise<readonly string[] | null> {
  // Words are as long as that, and in lower case as the store understands it.
  const text = [...search].slice(0, WORD_LIMIT).join("");
  const rows = await db
    .selectFrom("stream_word")
    .select("stream_id")
    .where("organisation_id", "=", organisationId)
    .where("word", ">=", sql<string>`lower(${text})`)
    .where("word", "<", sql<string>`lower(${text}) || ${LAST_CHARACTER}`)
    .orderBy("word")
    .orderBy("stream_id")
    .limit(COMMON)
    .execute();
  return rows.length === COMMON ? null : rows.map(({ stream_id: id }) => id);
}

/** The same for an end of the title or of the external id. */
async function titledLike(
  db: Kysely<Schema>,
  organisationId: string,
  search: string,
): Promise<readonly string[] | null> {
  const text = [...search.toLowerCase()].slice(0, WORD_LIMIT).join("");
  const rows = await db
    .selectFrom("stream_text")
    .select("stream_id")
    .where("organisation_id", "=", organisationId)
    .where("word", ">=", text)
    .where("word", "<", `${text}${LAST_CHARACTER}`)
    .orderBy("word")
    .orderBy("stream_id")
    .limit(COMMON)
    .execute();
  return rows.length === COMMON ? null : rows.map(({ stream_id: id }) => id);
}

/** Id of the stream, or none. */
async function withExternalId(
  db: Kysely<Schema>,
  organisationId: string,
  externalId: string,
): Promise<readonly string[]> {
  const found = await db
    .selectFrom("stream_external_id")
    .select("stream_id")
    .where("organisation_id", "=", organisationId)
    .where("external_id", "=", externalId)
    .executeTakeFirst();
  return found === undefined ? [] : [found.stream_id];
}

/** The streams with these ids that pass the filters, in the order of the list. */
async function lookedUp(
  db: Kysely<Schema>,
  ids: readonly string[],
  filter: StreamFilter,
): Promise<readonly StreamTable[]> {
  const found: StreamTable[] = [];
  for (let at = 0; at < ids.length; at += LOOKED_UP) {
    let query = db
      .selectFrom("stream")
      .selectAll("stream")
      .where("id", "in", ids.slice(at, at + LOOKED_UP));
    const { behind } = filter;
    if (behind) query = query.where(isBehind("created_at", behind.createdAt, behind.id));
    found.push(...(await filtered(db, query, filter)));
  }
  return found.sort((one, other) => Number(other.created_at) - Number(one.created_at) || (one.id < other.id ? -1 : 1));
}

/** True for `listed` streams with `search` in the name, a tag, the title or the external id, case-insensitive. */
function isLike(search: string): RawBuilder<boolean> {
  const part = `%${search.replaceAll(/[\\%_]/g, "\\$&")}%`;
  const has = (column: string) => sql`lower(${sql.ref(column)}) like lower(${part}) escape '\\'`;
  return sql<boolean>`(${has("listed.name")} or exists (select 1 from json_each(listed.tags)
    where ${has("json_each.value")})
    or listed.found_by like ${part.toLowerCase()} escape '\\')`;
}
