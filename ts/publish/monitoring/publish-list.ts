// The publishes of a stream recorded in the store, newest first. Current numbers of running publishes are in
// measurements.ts.
import { type Kysely, type Selectable, sql } from "kysely";
import type { Protocol } from "../../media/protocols.ts";
import type { PublishTracks } from "../../media.ts";
import type { PublishTable, Schema } from "../../store/schema.ts";
import { type Ending, readEnding } from "../ending/ending.ts";
import { endWords } from "./end-words.ts";

/** One publish from request to end; null where its row has no value. */
export interface PastPublish {
  readonly clientId: number;
  readonly state: PublishTable["state"];
  readonly protocol: Protocol | null;
  /** IP address of the broadcaster; that of denied publishes is erased after some days. */
  readonly address: string | null;
  /** Epoch ms, as the next two. */
  readonly askedAt: number;
  readonly acceptedAt: number | null;
  readonly endedAt: number | null;
  /** Client id of the lost publish whose upstreams and players it took over. */
  readonly continues: number | null;
  /** A `RecordedEndReason`; `endWords` turns it into a sentence. */
  readonly endReason: string | null;
  readonly endWords: string | null;
  /** Who asked for the end; null for nobody. */
  readonly ending: Ending | null;
  /** Why it was denied, a `DenialCause`, and the reason sent to the broadcaster. */
  readonly denial: { readonly cause: string; readonly reason: string; readonly status: number | null } | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Its tracks, and the frames its readers lost. */
  readonly video: PublishTracks["video"];
  readonly audio: PublishTracks["audio"];
  readonly droppedFrames: number | null;
}

/** The position of a publish in the list: when it was asked, epoch ms, and its client id. Client ids alone ascend on one node
 *  only. */
export type PublishPosition = [askedAt: number, clientId: number];

/** The newest `quantity` publishes of a stream; only those after `before` in the list, and asked from `from` on and before
 *  `to`, epoch ms. */
export async function listPublishes(
  db: Kysely<Schema>,
  streamId: string,
  page: {
    readonly before: PublishPosition | null;
    readonly quantity: number;
    readonly from?: number | null;
    readonly to?: number | null;
  },
): Promise<readonly PastPublish[]> {
  let query = db.selectFrom("publish").selectAll().where("stream_id", "=", streamId);
  const { from = null, to = null } = page;
  if (from !== null) query = query.where("asked_at", ">=", from);
  if (to !== null) query = query.where("asked_at", "<", to);
  if (page.before !== null) {
    const [askedAt, clientId] = page.before;
    query = query.where(sql<boolean>`(asked_at, client_id) < (${askedAt}, ${clientId})`);
  }
  const rows = await query.orderBy("asked_at", "desc").orderBy("client_id", "desc").limit(page.quantity).execute();
  return rows.map(pastPublish);
}

/** Why a publish ended; null while no end is recorded. */
export async function endReasonOf(db: Kysely<Schema>, clientId: number): Promise<string | null> {
  const row = await db.selectFrom("publish").select("end_reason").where("client_id", "=", clientId).executeTakeFirst();
  return row?.end_reason ?? null;
}

function pastPublish(row: Selectable<PublishTable>): PastPublish {
  const { denial_cause: cause, denial_reason: reason, end_reason: endReason } = row;
  const ending = readEnding(row);
  return {
    clientId: Number(row.client_id),
    state: row.state,
    protocol: row.protocol,
    address: row.address === "" ? null : row.address,
    askedAt: Number(row.asked_at),
    acceptedAt: numberOrNull(row.accepted_at),
    endedAt: numberOrNull(row.ended_at),
    continues: numberOrNull(row.continues),
    endReason,
    endWords: endReason === null ? null : endWords(endReason, ending),
    ending,
    denial: cause === null || reason === null ? null : { cause, reason, status: numberOrNull(row.denial_status) },
    bytesIn: Number(row.bytes_in),
    bytesOut: Number(row.bytes_out) + Number(row.bytes_elsewhere),
    video: row.video === null ? null : (JSON.parse(row.video) as PublishTracks["video"]),
    audio: row.audio === null ? null : (JSON.parse(row.audio) as PublishTracks["audio"]),
    droppedFrames: numberOrNull(row.dropped_frames),
  };
}

const numberOrNull = (value: number | null): number | null => (value === null ? null : Number(value));
