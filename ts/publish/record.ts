// What the store remembers of a publish, from intent to end. Each function is one transaction; none talks to anybody.
import { type CompiledQuery, type ExpressionBuilder, type Kysely, sql } from "kysely";
import type { EndReason } from "../media/codes.ts";
import type { Protocol } from "../media/protocols.ts";
import type { PublishSnapshot } from "../media.ts";
import { step } from "../step-times.ts";
import type { Schema } from "../store/schema.ts";
import { together } from "../store/together.ts";
import { addUsage } from "./daily-bytes.ts";
import type { Denied } from "./denials.ts";
import { doneBody, type WebhookSubject } from "./webhook/body.ts";
import { newWebhookId } from "./webhook/signature.ts";

/** Publishes whose counters are written in one transaction. */
const COUNTERS_AT_A_TIME = 25;

/** A publish request that the customer is about to be asked about. */
export interface Intent extends WebhookSubject {
  readonly organisationId: string;
  readonly streamId: string;
  readonly protocol: Protocol;
  /** URL to ask, null when the organisation has none. */
  readonly webhook: string | null;
}

/** Ends that media does not know: the gateway died, the stream was locked or deleted while the customer was asked, or too
 *  many updates had no answer (W16). */
export type RecordedEndReason = EndReason | "gateway_restarted" | "stream_withdrawn" | "customer_unreachable";

/** The intent row of W17a. */
export async function recordIntent(db: Kysely<Schema>, intent: Intent, now: number): Promise<void> {
  const publish = db.insertInto("publish").values({
    client_id: intent.clientId,
    organisation_id: intent.organisationId,
    stream_id: intent.streamId,
    name: intent.name,
    app: intent.app,
    arguments: intent.arguments === null ? null : Buffer.from(intent.arguments).toString("latin1"),
    address: intent.address,
    protocol: intent.protocol,
    webhook: intent.webhook,
    state: "asking",
    asked_at: now,
    accepted_at: null,
    ended_at: null,
    end_reason: null,
    bytes_in: 0,
    bytes_out: 0,
  });
  await step("intent", () => publish.execute(), intent.clientId);
}

/** A publish that was denied, and what the broadcaster was told. */
export interface Denial extends Pick<Denied, "cause" | "description"> {
  readonly clientId: number;
}

/** The answer was no. A denied publish never gets a publish_done. At most some hundred `denials`. */
export async function recordDenied(db: Kysely<Schema>, denials: readonly Denial[], now: number): Promise<void> {
  const rows = denials.map(
    ({ clientId, cause, description }) =>
      sql`(cast(${clientId} as bigint), cast(${cause} as text), cast(${description} as text))`,
  );
  // Both stores name the columns of a list of values so.
  await sql`
    update publish set state = 'denied', ended_at = cast(${now} as bigint),
      denial_cause = denial.column2, denial_reason = denial.column3
    from (values ${sql.join(rows)}) as denial
    where publish.client_id = denial.column1 and publish.state = 'asking'
  `.execute(db);
}

/** The answer was yes: publish and stream become live. False when the stream was locked or deleted meanwhile, or its
 *  organisation may do nothing any more. */
export async function recordLive(db: Kysely<Schema>, intent: Intent, now: number): Promise<boolean> {
  const stream = db
    .updateTable("stream")
    .set({ state: "live", updated_at: now })
    .where("id", "=", intent.streamId)
    .where("state", "not in", ["locked", "deleted"])
    .where((eb) => eb.exists(isEnabledAt(eb, intent.organisationId, now)));
  const publish = db
    .updateTable("publish")
    .set({ state: "live", accepted_at: now })
    .where("client_id", "=", intent.clientId)
    .where("state", "=", "asking")
    .where((eb) => eb.exists(isLive(eb, intent.streamId)));
  const [streams] = await step("live", () => together(db, [stream.compile(), publish.compile()]), intent.clientId);
  return streams === 1;
}

/** As `isEnabled` decides, in SQL. */
function isEnabledAt(eb: ExpressionBuilder<Schema, "stream">, organisationId: string, now: number) {
  return eb
    .selectFrom("organisation")
    .select("organisation.id")
    .where("organisation.id", "=", organisationId)
    .where("organisation.enabled", "=", 1)
    .where((of) =>
      of.or([
        of("organisation.plan", "=", "paid"),
        of("organisation.trial_ends_at", "is", null),
        of("organisation.trial_ends_at", ">", now),
      ]),
    );
}

function isLive(eb: ExpressionBuilder<Schema, "publish">, streamId: string) {
  return eb
    .selectFrom("stream")
    .select("stream.id")
    .where("stream.id", "=", streamId)
    .where("stream.state", "=", "live");
}

/** What is kept of a running publish. */
type Counters = Pick<PublishSnapshot, "clientId" | "bytesIn" | "bytesOut" | "droppedFrames" | "tracks">;

/** Keeps the counters of running publishes, so that a crash loses at most the last ones (W8), and what they carry. Some
 *  at a time: whoever wants to publish meanwhile does not wait for all of them. */
export async function recordBytes(db: Kysely<Schema>, counters: readonly Counters[], now: number): Promise<void> {
  const queries = counters.map(({ clientId, bytesIn, bytesOut, droppedFrames, tracks: { video, audio } }) => [
    addUsage(db, { clientId, bytesIn, bytesOut }, now),
    db
      .updateTable("publish")
      .set({ bytes_in: bytesIn, bytes_out: bytesOut, dropped_frames: droppedFrames })
      // What was known once stays known.
      .$if(video !== null, (update) => update.set({ video: JSON.stringify(video) }))
      .$if(audio !== null, (update) => update.set({ audio: JSON.stringify(audio) }))
      .where("client_id", "=", clientId)
      .where("state", "=", "live")
      .compile(),
  ]);
  for (let at = 0; at < queries.length; at += COUNTERS_AT_A_TIME) {
    await together(db, queries.slice(at, at + COUNTERS_AT_A_TIME).flat());
  }
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
  const row = await db.selectFrom("publish").selectAll().where("client_id", "=", clientId).executeTakeFirst();
  if (row === undefined) return;
  const bytes = end.bytes ?? { bytesIn: Number(row.bytes_in), bytesOut: Number(row.bytes_out) };
  const customArguments = row.arguments === null ? null : Buffer.from(row.arguments, "latin1");
  const body = doneBody({ ...row, clientId, arguments: customArguments }, bytes);
  // What was read does not change any more but for the state, which each statement looks at itself.
  await together(db, [
    addUsage(db, { clientId, ...bytes }, now),
    sql`
      insert into outbox (id, organisation_id, client_id, url, body, next_attempt_at, created_at)
      select cast(${newWebhookId()} as text), organisation_id, client_id, webhook,
        cast(${Buffer.from(body).toString("latin1")} as text), cast(${now} as bigint), cast(${now} as bigint)
      from publish
      where client_id = ${clientId} and state in ('asking', 'live') and webhook is not null
    `.compile(db),
    db
      .updateTable("publish")
      .set({
        state: "ended",
        ended_at: now,
        end_reason: end.reason,
        bytes_in: bytes.bytesIn,
        bytes_out: bytes.bytesOut,
      })
      .where("client_id", "=", clientId)
      .where("state", "in", ["asking", "live"])
      .compile(),
    endStream(db, row.stream_id, now),
  ]);
}

/** A stream ends with its last publish; a replaced publish ends while its successor is live. */
function endStream(db: Kysely<Schema>, streamId: string, now: number): CompiledQuery {
  return db
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
    .compile();
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

/** Of a publish, as every line about it in the log names it. The stream by its id: names are secrets. */
export const identityOf = ({
  clientId,
  organisationId,
  streamId,
}: Pick<Intent, "clientId" | "organisationId" | "streamId">) => ({
  clientId,
  organisation: organisationId,
  stream: streamId,
});
