// Upstreams that a stream is always pushed to. Their URLs contain stream keys: the store has them sealed, and they are
// never shown again.
import { randomUUID } from "node:crypto";
import type { CompiledQuery, Kysely, Selectable } from "kysely";
import { InvalidValue, UnknownUpstream } from "../errors.ts";
import type { Schema, StreamUpstreamTable } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { findStream } from "./streams.ts";

/** Most upstreams of one stream: each is a connection and a queue while it is live. */
export const UPSTREAMS_LIMIT = 16;
/** Longest label, characters. */
export const UPSTREAM_LABEL_LIMIT = 100;

export interface StreamUpstream {
  readonly id: string;
  /** The complete URL: secret. */
  readonly url: string;
  /** The customer's label; null for none. */
  readonly label: string | null;
  /** Whether nothing is pushed there until it is resumed. */
  readonly paused: boolean;
  /** Epoch ms. */
  readonly createdAt: number;
}

export interface StreamUpstreams {
  /** Oldest first. Rejects with `UnknownStream`. */
  list(organisationId: string, streamId: string): Promise<readonly StreamUpstream[]>;
  /** In the caller's transaction. `url` was validated by the caller. Rejects with `UnknownStream`, or with
   *  `InvalidValue` beyond the limit. */
  add(
    trx: Kysely<Schema>,
    organisationId: string,
    streamId: string,
    wanted: Pick<StreamUpstream, "url" | "label">,
    now: number,
  ): Promise<StreamUpstream>;
  /** In the caller's transaction; returns the removed upstream. Rejects with `UnknownStream` or `UnknownUpstream`. */
  remove(trx: Kysely<Schema>, organisationId: string, streamId: string, id: string): Promise<StreamUpstream>;
  /** Reads the upstreams of a stream, the oldest first; `read` makes them of its rows. */
  query(streamId: string): CompiledQuery<Row>;
  read(rows: readonly Row[]): readonly StreamUpstream[];
  /** Pauses or resumes it, in the caller's transaction. Rejects as `remove`. */
  setPaused(
    trx: Kysely<Schema>,
    organisationId: string,
    streamId: string,
    change: { readonly id: string; readonly paused: boolean },
    now: number,
  ): Promise<StreamUpstream>;
  /** Rejects with `UnknownStream` or `UnknownUpstream`. */
  find(organisationId: string, streamId: string, id: string): Promise<StreamUpstream>;
}

type Row = Selectable<StreamUpstreamTable>;

/** A label in the form in which it is stored: printable, and null when none was given. Throws `InvalidValue`. */
export function readUpstreamLabel(text: string | null): string | null {
  const label = text?.trim() ?? "";
  if (label === "") return null;
  if ([...label].length > UPSTREAM_LABEL_LIMIT) {
    throw new InvalidValue("label", `must not be longer than ${UPSTREAM_LABEL_LIMIT} characters`);
  }
  // Control and format characters (line ends, bidirectional overrides) would alter the text around it.
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(label)) throw new InvalidValue("label", "must be printable characters");
  return label;
}

export function createStreamUpstreams(deps: {
  readonly db: Kysely<Schema>;
  readonly secretBox: SecretBox;
}): StreamUpstreams {
  const { db, secretBox } = deps;

  return {
    async list(organisationId, streamId) {
      await findStream(db, organisationId, streamId);
      return await all(db, streamId);
    },
    async add(trx, organisationId, streamId, { url, label }, now) {
      await findStream(trx, organisationId, streamId);
      const id = randomUUID();
      const sealed = secretBox.seal(url, purposeOf(id));
      // Counted in the statement that adds the row, so that concurrent requests cannot exceed the limit together.
      const added = await trx
        .insertInto("stream_upstream")
        .columns(["id", "stream_id", "url", "label", "created_at"])
        .expression((eb) =>
          eb
            .selectFrom("stream")
            .select([
              eb.val(id).as("id"),
              "stream.id as stream_id",
              eb.val(sealed).as("url"),
              eb.val(label).as("label"),
              eb.val(now).as("at"),
            ])
            .where("stream.id", "=", streamId)
            .where(
              (of) =>
                of
                  .selectFrom("stream_upstream")
                  .select(of.fn.countAll<number>().as("count"))
                  .where("stream_upstream.stream_id", "=", streamId),
              "<",
              UPSTREAMS_LIMIT,
            ),
        )
        .executeTakeFirst();
      if (added.numInsertedOrUpdatedRows === 0n) {
        throw new InvalidValue("url", `exceeds the limit of ${UPSTREAMS_LIMIT} upstreams per stream`);
      }
      return { id, url, label, paused: false, createdAt: now };
    },
    async remove(trx, organisationId, streamId, id) {
      const removed = await one(trx, organisationId, streamId, id);
      await trx.deleteFrom("stream_upstream").where("id", "=", id).execute();
      return removed;
    },
    async setPaused(trx, organisationId, streamId, { id, paused }, now) {
      const upstream = await one(trx, organisationId, streamId, id);
      if (upstream.paused === paused) return upstream;
      const paused_at = paused ? now : null;
      await trx.updateTable("stream_upstream").set({ paused_at }).where("id", "=", id).execute();
      return { ...upstream, paused };
    },
    find: async (organisationId, streamId, id) => await one(db, organisationId, streamId, id),
    query: (streamId) => query(streamId).compile(),
    read,
  };

  async function one(from: Kysely<Schema>, organisationId: string, streamId: string, id: string) {
    await findStream(from, organisationId, streamId);
    const found = (await all(from, streamId)).find((upstream) => upstream.id === id);
    if (found === undefined) throw new UnknownUpstream();
    return found;
  }

  function query(streamId: string) {
    const upstreams = db.selectFrom("stream_upstream").selectAll().where("stream_id", "=", streamId);
    return upstreams.orderBy("created_at").orderBy("id");
  }

  async function all(from: Kysely<Schema>, streamId: string): Promise<readonly StreamUpstream[]> {
    return read((await from.executeQuery(query(streamId))).rows);
  }

  function read(rows: readonly Row[]): readonly StreamUpstream[] {
    return rows.map(({ id, url, label, paused_at, created_at }) => ({
      id,
      url: secretBox.open(url, purposeOf(id)),
      label,
      paused: paused_at !== null,
      createdAt: Number(created_at),
    }));
  }
}

/** A sealed URL can be opened only for its own row. */
function purposeOf(id: string): string {
  return `stream_upstream:${id}`;
}
