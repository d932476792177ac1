// What the store remembers of a publish, from intent to end. Each function is one transaction; none talks to anybody.
import type { Kysely, Transaction } from "kysely";
import type { EndReason } from "../media.ts";
import type { Schema } from "../store/schema.ts";
import { addUsage } from "./usage.ts";
import { doneBody, type WebhookSubject } from "./webhook-body.ts";
import { newWebhookId } from "./webhook-signature.ts";

/** A publish request that the customer is about to be asked about. */
export interface Intent extends WebhookSubject {
  readonly organisationId: string;
  readonly streamId: string;
  /** URL to ask, null when the organisation has none. */
  readonly webhook: string | null;
}

/** Ends that media did not report: the gateway died, or the stream was locked or deleted while the customer was asked. */
export type RecordedEndReason = EndReason | "gateway_restarted" | "stream_withdrawn";

/** The intent row of W17a. */
export async function recordIntent(db: Kysely<Schema>, intent: Intent, now: number): Promise<void> {
  await db
    .insertInto("publish")
    .values({
      client_id: intent.clientId,
      organisation_id: intent.organisationId,
      stream_id: intent.streamId,
      name: intent.name,
      app: intent.app,
      arguments: intent.arguments === null ? null : Buffer.from(intent.arguments).toString("latin1"),
      address: intent.address,
      webhook: intent.webhook,
      state: "asking",
      asked_at: now,
      accepted_at: null,
      ended_at: null,
      end_reason: null,
      bytes_in: 0,
      bytes_out: 0,
    })
    .execute();
}

/** The answer was no. A denied publish never gets a publish_done. */
export async function recordDenied(db: Kysely<Schema>, clientId: number, now: number): Promise<void> {
  await db
    .updateTable("publish")
    .set({ state: "denied", ended_at: now })
    .where("client_id", "=", clientId)
    .where("state", "=", "asking")
    .execute();
}

/** The answer was yes: publish and stream become live. False when the stream was locked or deleted meanwhile. */
export async function recordLive(db: Kysely<Schema>, intent: Intent, now: number): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const stream = await trx
      .updateTable("stream")
      .set({ state: "live", updated_at: now })
      .where("id", "=", intent.streamId)
      .where("state", "not in", ["locked", "deleted"])
      .executeTakeFirst();
    if (stream.numUpdatedRows === 0n) return false;
    await trx
      .updateTable("publish")
      .set({ state: "live", accepted_at: now })
      .where("client_id", "=", intent.clientId)
      .where("state", "=", "asking")
      .execute();
    return true;
  });
}

/** Keeps the counters of running publishes, so that a crash loses at most the last ones (W8). */
export async function recordBytes(
  db: Kysely<Schema>,
  counters: readonly { readonly clientId: number; readonly bytesIn: number; readonly bytesOut: number }[],
  now: number,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    for (const { clientId, bytesIn, bytesOut } of counters) {
      await addUsage(trx, { clientId, bytesIn, bytesOut }, now);
      await trx
        .updateTable("publish")
        .set({ bytes_in: bytesIn, bytes_out: bytesOut })
        .where("client_id", "=", clientId)
        .where("state", "=", "live")
        .execute();
    }
  });
}

/** Ends an accepted publish and, when the customer was asked, leaves its publish_done in the outbox: both or neither.
 *  A publish that is not open any more is left alone, so the event exists once whoever asks how often.
 *  `bytes`: the last count, or null to use the persisted one. */
export async function recordEnd(
  db: Kysely<Schema>,
  clientId: number,
  end: {
    readonly reason: RecordedEndReason;
    readonly bytes: { readonly bytesIn: number; readonly bytesOut: number } | null;
  },
  now: number,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("publish")
      .selectAll()
      .where("client_id", "=", clientId)
      .where("state", "in", ["asking", "live"])
      .executeTakeFirst();
    if (row === undefined) return;
    const bytes = end.bytes ?? { bytesIn: Number(row.bytes_in), bytesOut: Number(row.bytes_out) };
    await addUsage(trx, { clientId, ...bytes }, now);
    await trx
      .updateTable("publish")
      .set({
        state: "ended",
        ended_at: now,
        end_reason: end.reason,
        bytes_in: bytes.bytesIn,
        bytes_out: bytes.bytesOut,
      })
      .where("client_id", "=", clientId)
      .execute();
    await endStream(trx, row.stream_id, now);
    if (row.webhook === null) return;
    const customArguments = row.arguments === null ? null : Buffer.from(row.arguments, "latin1");
    const body = doneBody({ ...row, clientId, arguments: customArguments }, bytes);
    await trx
      .insertInto("outbox")
      .values({
        id: newWebhookId(),
        organisation_id: row.organisation_id,
        client_id: clientId,
        url: row.webhook,
        body: Buffer.from(body).toString("latin1"),
        next_attempt_at: now,
        created_at: now,
        delivered_at: null,
        given_up_at: null,
        last_status: null,
      })
      .execute();
  });
}

/** A stream ends with its last publish; a replaced publish ends while its successor is live. */
async function endStream(trx: Transaction<Schema>, streamId: string, now: number): Promise<void> {
  await trx
    .updateTable("stream")
    .set({ state: "ended", updated_at: now })
    .where("id", "=", streamId)
    .where("state", "=", "live")
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("publish")
            .select("publish.client_id")
            .where("publish.stream_id", "=", streamId)
            .where("publish.state", "=", "live"),
        ),
      ),
    )
    .execute();
}

/** Client ids of publishes that a former process left open (W17a): accepted ones and ones whose answer is unknown. */
export async function openPublishes(db: Kysely<Schema>): Promise<readonly number[]> {
  const rows = await db
    .selectFrom("publish")
    .select("client_id")
    .where("state", "in", ["asking", "live"])
    .orderBy("client_id")
    .execute();
  return rows.map((row) => Number(row.client_id));
}
