// Streams: named places one can publish to (M8–M12). The states live and ended are set by the life of a publish.
import { randomUUID } from "node:crypto";
import { type Kysely, type RawBuilder, sql } from "kysely";
import { UnknownStream } from "../errors.ts";
import type { OrganisationTable, Schema, StreamTable } from "../store/schema.ts";
import { checkRoom } from "../store/table-bounds.ts";
import { randomText } from "./key-text.ts";

/** Limits of M8: tags of a stream, and length of a tag in characters. */
export const TAGS_LIMIT = 50;
export const TAG_LENGTH_LIMIT = 100;
/** Characters of what a renewed publish key is derived from: 131 bits. */
const KEY_SALT_LENGTH = 22;
/** How much of the tags that changed the audit log keeps, characters: it keeps them for more than a year. */
const AUDITED_CHARACTERS = 500;

/** Creates a stream with a fresh name `<organisation hash>-<nameRandom characters>` (M12), in the transaction `trx`. */
export async function createStream(
  trx: Kysely<Schema>,
  organisation: Pick<OrganisationTable, "id" | "hash">,
  {
    tags,
    publishKey = null,
    nameRandom,
    now,
  }: {
    readonly tags: readonly string[];
    /** Null: the organisation's setting applies. */
    readonly publishKey?: boolean | null;
    readonly nameRandom: number;
    readonly now: number;
  },
): Promise<StreamTable> {
  await checkRoom(trx, organisation.id, "stream", "stream");
  return await trx
    .insertInto("stream")
    .values({
      id: randomUUID(),
      organisation_id: organisation.id,
      name: `${organisation.hash}-${randomText(nameRandom)}`,
      state: "created",
      tags: JSON.stringify(tags),
      publish_key: columnOf(publishKey),
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** True for streams with this tag; `of`: the name of their table in the statement. */
export function hasTag(tag: string, of = "stream"): RawBuilder<boolean> {
  return sql<boolean>`exists (select 1 from json_each(${sql.ref(`${of}.tags`)}) where json_each.value = ${tag})`;
}

/** A stream of the organisation, which must have the tag if one is given. Throws `UnknownStream`, also for another
 *  organisation's and for deleted ones. */
export async function findStream(
  db: Kysely<Schema>,
  organisationId: string,
  id: string,
  tag: string | null = null,
): Promise<StreamTable> {
  if (id.includes("\0") || !id.isWellFormed()) throw new UnknownStream(); // no id is like that, and the store takes none
  let query = db
    .selectFrom("stream")
    .selectAll()
    .where("id", "=", id)
    .where("organisation_id", "=", organisationId)
    .where("state", "!=", "deleted");
  if (tag !== null) query = query.where(hasTag(tag));
  const stream = await query.executeTakeFirst();
  if (stream === undefined) throw new UnknownStream();
  return stream;
}

/** The stream of this name (without arguments) in the organisation, which must have the tag if one is given. Throws
 *  `UnknownStream` like `findStream`. */
export async function findStreamByName(
  db: Kysely<Schema>,
  organisationId: string,
  name: string,
  tag: string | null,
): Promise<StreamTable> {
  const named = await db.selectFrom("stream").select("id").where("name", "=", name).executeTakeFirst();
  if (named === undefined) throw new UnknownStream();
  return await findStream(db, organisationId, named.id, tag);
}

/** The organisation of the stream with this name; null for none. */
export async function organisationOf(db: Kysely<Schema>, name: string): Promise<string | null> {
  if (name.includes("\0")) return null;
  const found = await db.selectFrom("stream").select("organisation_id").where("name", "=", name).executeTakeFirst();
  return found?.organisation_id ?? null;
}

/** How tags differ from former ones, for the audit log: not the whole lists, which may be long. */
export function changeOfTags(stream: Pick<StreamTable, "tags">, tags: readonly string[]) {
  const former = JSON.parse(stream.tags) as readonly string[];
  const without = (all: readonly string[], others: readonly string[]) =>
    [...new Set(all)].filter((tag) => !others.includes(tag));
  const [added, removed] = [without(tags, former), without(former, tags)];
  return {
    tags: tags.length,
    ...(added.length > 0 && { added: shortList(added) }),
    ...(removed.length > 0 && { removed: shortList(removed) }),
  };
}

/** As many as fit into a line of the audit log, and the number of the others. */
export function shortList(tags: readonly string[]): readonly string[] {
  let characters = 0;
  const shown = tags.filter((tag) => {
    characters += tag.length;
    return characters <= AUDITED_CHARACTERS;
  });
  return shown.length === tags.length ? tags : [...shown, `and ${tags.length - shown.length} more`];
}

/** Replaces the tags of a stream from `findStream`, in the transaction `trx`. */
export async function setTags(
  trx: Kysely<Schema>,
  stream: StreamTable,
  tags: readonly string[],
  now: number,
): Promise<StreamTable> {
  const text = JSON.stringify(tags);
  if (text.length > stream.tags.length) await checkRoom(trx, stream.organisation_id, "stream", "tags", "bytes");
  return await update(trx, stream, { tags: text, updated_at: now });
}

/** Sets how long upstreams and players of a lost publish are held from the next publish on, s; null: the organisation's
 *  setting applies. */
export async function setHold(
  db: Kysely<Schema>,
  stream: StreamTable,
  seconds: number | null,
  now: number,
): Promise<StreamTable> {
  return await update(db, stream, { hold_s: seconds, updated_at: now });
}

/** Sets whether publishes need the publish key, from the next one on; null: the organisation's setting applies. */
export async function setPublishKey(
  db: Kysely<Schema>,
  stream: StreamTable,
  isNeeded: boolean | null,
  now: number,
): Promise<StreamTable> {
  return await update(db, stream, { publish_key: columnOf(isNeeded), updated_at: now });
}

/** Renews the publish key. What it is derived from is random, and no counter: a store that is restored from a backup
 *  must not repeat a key. */
export async function renewPublishKey(db: Kysely<Schema>, stream: StreamTable, now: number): Promise<StreamTable> {
  return await update(db, stream, { key_salt: randomText(KEY_SALT_LENGTH), updated_at: now });
}

const columnOf = (isNeeded: boolean | null) => (isNeeded === null ? null : Number(isNeeded));

/** Locks the stream, so that publishes are refused (M11); no effect on a locked stream. The caller must end a running
 *  publish. */
export async function lockStream(db: Kysely<Schema>, stream: StreamTable, now: number): Promise<StreamTable> {
  if (stream.state === "locked") return stream;
  const before = stream.state === "created" ? "created" : "ended"; // what is live will have ended
  return await update(db, stream, { state: "locked", state_before_lock: before, updated_at: now });
}

/** Restores the state before the lock, and ends a refusal; no effect on a stream that is neither locked nor refused. */
export async function unlockStream(db: Kysely<Schema>, stream: StreamTable, now: number): Promise<StreamTable> {
  const allowed = { refused_until: null, refused_reason: null, updated_at: now };
  if (stream.state === "locked") {
    const state = stream.state_before_lock ?? "ended";
    return await update(db, stream, { state, state_before_lock: null, ...allowed });
  }
  return stream.refused_until === null ? stream : await update(db, stream, allowed);
}

/** A refusal of new publishes after an end. */
export interface Refusal {
  /** Epoch ms. */
  readonly until: number;
  /** For their broadcasters. */
  readonly reason: string;
}

/** Null for no time at all. */
export function refusalFor(seconds: number, reason: string, now: number): Refusal | null {
  return seconds === 0 ? null : { until: now + seconds * 1_000, reason };
}

/** Refuses publishes of the stream for a while; null: from now on they are not refused. */
export async function refuseStream(
  db: Kysely<Schema>,
  stream: StreamTable,
  refusal: Refusal | null,
  now: number,
): Promise<StreamTable> {
  const { until, reason } = refusal ?? { until: null, reason: null };
  return await update(db, stream, { refused_until: until, refused_reason: reason, updated_at: now });
}

/** Deletes the stream permanently; its row keeps the name from being used again. */
export async function deleteStream(db: Kysely<Schema>, stream: StreamTable, now: number): Promise<StreamTable> {
  return await update(db, stream, { state: "deleted", updated_at: now });
}

/** Throws `UnknownStream` when it was deleted meanwhile. */
async function update(
  db: Kysely<Schema>,
  stream: StreamTable,
  change: Partial<
    Pick<
      StreamTable,
      | "state"
      | "state_before_lock"
      | "tags"
      | "hold_s"
      | "publish_key"
      | "key_salt"
      | "refused_until"
      | "refused_reason"
    >
  > & {
    readonly updated_at: number;
  },
): Promise<StreamTable> {
  const updated = await db
    .updateTable("stream")
    .set(change)
    .where("id", "=", stream.id)
    .where("state", "!=", "deleted")
    .returningAll()
    .executeTakeFirst();
  if (updated === undefined) throw new UnknownStream();
  return updated;
}
