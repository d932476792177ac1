// The stored record of a publish, from intent to end. Each function is one transaction; none does other I/O.
import { type CompiledQuery, type Kysely, sql } from "kysely";
import type { PublishEnded } from "../media/events.ts";
import type { Protocol } from "../media/protocols.ts";
import type { PublishSnapshot, PublishTracks } from "../media.ts";
import { step } from "../step-times.ts";
import type { Schema } from "../store/schema.ts";
import { together, togetherWith } from "../store/statements/together.ts";
import { type Trace, traceText } from "../tracing/trace.ts";
import { addUsage } from "./bytes/daily-bytes.ts";
import type { Denied } from "./denials.ts";
import { type Ending, writeEnding } from "./ending/ending.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import { REFUSAL_LIMIT_MS } from "./ending/refused-streams.ts";
import { doneBodyAround, type WebhookSubject } from "./webhook/body.ts";
import { OUTBOXES, type OutboxName } from "./webhook/outbox/waiting.ts";
import { newWebhookId } from "./webhook/signature.ts";

/** Publishes whose counters are written in one transaction. */
const COUNTERS_AT_A_TIME = 25;

/** A publish request about which the customer is going to be asked. */
export interface Intent extends WebhookSubject {
  readonly organisationId: string;
  readonly streamId: string;
  readonly protocol: Protocol;
  /** The webhook URL, null when the organisation has none. */
  readonly webhook: string | null;
  /** Epoch of the node that owns the publish. */
  readonly epoch: number;
  /** The trace that its webhook calls belong to. */
  readonly trace: Trace;
  /** Whether it is the backup of its stream, which may run beside the other publish. */
  readonly backup: boolean;
  /** Its custom arguments without the backup argument: publishes of one stream with equal ones are one broadcast. */
  readonly otherArguments: Uint8Array | null;
  /** When the request arrived, epoch ms. */
  readonly requestedAt: number;
  /** What the store has of its WHIP session's id (ended-sessions.ts); null for RTMP. */
  readonly sessionHash: string | null;
}

/** Writes the intent row of W17a. False when the other nodes declared this node dead. */
export async function recordIntent(db: Kysely<Schema>, intent: Intent, now: number): Promise<boolean> {
  const { clientId, organisationId, streamId, name, app, address, protocol, webhook, epoch } = intent;
  const custom = intent.arguments === null ? null : Buffer.from(intent.arguments).toString("latin1");
  const insert = sql`
    insert into publish (client_id, organisation_id, stream_id, name, app, arguments, address, protocol, webhook, state,
      asked_at, bytes_in, bytes_out, trace, backup, session, epoch)
    select cast(${clientId} as bigint), cast(${organisationId} as text), cast(${streamId} as text), cast(${name} as text),
      cast(${app} as text), cast(${custom} as text), cast(${address} as text), cast(${protocol} as text),
      cast(${webhook} as text), 'asking', cast(${now} as bigint), 0, 0, cast(${traceText(intent.trace)} as text),
      cast(${intent.backup ? 1 : 0} as integer), cast(${intent.sessionHash} as text), epoch
    from node where epoch = ${epoch} and ${isPresent}
  `;
  const { numAffectedRows } = await step("intent", () => insert.execute(db), clientId);
  return numAffectedRows === 1n;
}

/** Whether a node counts as present in the cluster. */
const isPresent = sql<boolean>`node.state in ('up', 'draining')`;
/** Whether the node that owns a row is present. */
export const isOfPresentNode = (table: "publish" | "kept_end" | OutboxName) =>
  sql<boolean>`exists (select 1 from node where node.epoch = ${sql.ref(`${table}.epoch`)} and ${isPresent})`;
const isOwn = isOfPresentNode("publish");

/** A denied publish, and the reason sent to the broadcaster. */
export interface Denial extends Pick<Denied, "cause" | "description"> {
  readonly clientId: number;
  /** The customer's HTTP status, if that denied it. */
  readonly status: number | null;
}

/** Records denials. A denied publish never gets a publish_done. At most some hundred `denials`. */
export async function recordDenied(db: Kysely<Schema>, denials: readonly Denial[], now: number): Promise<void> {
  const rows = denials.map(
    ({ clientId, cause, description, status }) =>
      sql`(cast(${clientId} as bigint), cast(${cause} as text), cast(${description} as text), cast(${status} as integer))`,
  );
  // Both SQL dialects name the columns of a VALUES list this way.
  await sql`
    update publish set state = 'denied', ended_at = cast(${now} as bigint),
      denial_cause = denial.column2, denial_reason = denial.column3, denial_status = denial.column4
    from (values ${sql.join(rows)}) as denial
    where publish.client_id = denial.column1 and publish.state = 'asking'
  `.execute(db);
}

/** Records that the request was allowed: publish and stream become live. Resolves with the rows of `read`, which is
 *  executed after that; null when the stream was locked, refused or deleted meanwhile, its organisation is disabled, the
 *  name is live elsewhere (also as the other one of publish and backup), or the other nodes declared this node dead. */
export async function recordLive<Row>(
  db: Kysely<Schema>,
  intent: Intent,
  now: number,
  read: CompiledQuery<Row>,
): Promise<readonly Row[] | null> {
  // Plain SQL, so that no admission pays for building the statement.
  const { clientId, organisationId, streamId, name } = intent;
  const publish = sql`
    update publish set state = 'live', accepted_at = cast(${now} as bigint)
    where client_id = ${clientId} and state = 'asking' and ${isOwn}
      and exists (select 1 from stream where id = ${streamId} and state not in ('locked', 'deleted')
        and (refused_until is null or refused_until <= ${now} or refused_until > ${now + REFUSAL_LIMIT_MS}))
      and exists (select 1 from organisation where id = ${organisationId} and enabled = 1
        and (plan = 'paid' or trial_ends_at is null or trial_ends_at > ${now}))
      and not exists (select 1 from publish as other
        where other.name = ${name} and other.state = 'live' and other.epoch is not null
          and (other.backup = publish.backup or other.epoch <> publish.epoch))
  `.compile(db);
  const stream = sql`
    update stream set state = 'live', updated_at = cast(${now} as bigint)
    where id = ${streamId} and state not in ('locked', 'deleted')
      and exists (select 1 from publish where client_id = ${clientId} and state = 'live')
  `.compile(db);
  const { changes, rows } = await step("live", () => togetherWith(db, [publish, stream], read), clientId);
  return changes[0] === 1 ? rows : null;
}

/** The stored counters of a running publish. */
type Counters = Pick<PublishSnapshot, "clientId" | "bytesIn" | "bytesOut" | "droppedFrames" | "tracks">;

/** Stores the counters of running publishes, so that a crash loses at most the last interval (W8), and their tracks. In
 *  batches, so that a publish request does not wait for all of them. */
export async function recordBytes(db: Kysely<Schema>, counters: readonly Counters[], now: number): Promise<void> {
  const queries = counters.map(({ clientId, bytesIn, bytesOut, droppedFrames, tracks: { video, audio } }) => [
    addUsage(db, { clientId, bytesIn, bytesOut, whose: isOwn }, now),
    db
      .updateTable("publish")
      .set({ bytes_in: bytesIn, bytes_out: bytesOut, dropped_frames: droppedFrames })
      // Tracks once known are kept.
      .$if(video !== null, (update) => update.set({ video: written(video) }))
      .$if(audio !== null, (update) => update.set({ audio: written(audio) }))
      .where("client_id", "=", clientId)
      .where("state", "=", "live")
      .where(isOwn)
      .compile(),
  ]);
  for (let at = 0; at < queries.length; at += COUNTERS_AT_A_TIME) {
    await together(db, queries.slice(at, at + COUNTERS_AT_A_TIME).flat());
  }
}

const written = (track: PublishTracks["video" | "audio"]) => (track === null ? null : JSON.stringify(track));

/** Records that a publish took over the upstreams and players of a lost one. */
export async function recordContinued(db: Kysely<Schema>, clientId: number, lost: number): Promise<void> {
  await db.updateTable("publish").set({ continues: lost }).where("client_id", "=", clientId).where(isOwn).execute();
}

/** The counters of a whole publish, and its tracks. */
export type FinalCounters = Pick<PublishEnded, "bytesIn" | "bytesOut" | "droppedFrames" | "tracks">;

/** An end, and the node that reports it. */
interface End {
  readonly reason: RecordedEndReason;
  /** Who ended it on purpose; null for nobody. */
  readonly ending: Ending | null;
  /** Null to use the stored ones. */
  readonly counters: FinalCounters | null;
  /** Epoch of the node that reports it and will deliver the event. */
  readonly epoch: number;
  /** The node's own publish, or one whose node is gone; when that is no longer true, nothing happens. */
  readonly whose: "own" | "orphaned";
}

/** What the end of a publish needs to know of it. */
export type EndedSubject = WebhookSubject & Pick<Intent, "streamId">;

/** Ends an accepted publish and, when the customer was asked, puts its publish_done into the outbox: both or neither. A
 *  publish that is not open is left alone, so the event exists exactly once however often this is called. Resolves with
 *  the outboxes that may have it. */
export async function recordEnd(
  db: Kysely<Schema>,
  clientId: number,
  end: End,
  now: number,
): Promise<readonly OutboxName[]> {
  const open = await storedPublish(db, clientId);
  if (open === null) return OUTBOXES;
  return await recordEndOf(db, open.subject, { ...end, counters: end.counters ?? open.counters }, now);
}

/** Those of a publish whose end is recorded; stored ones may lack the dropped frames. */
type EndCounters = Omit<FinalCounters, "droppedFrames"> & { readonly droppedFrames: number | null };

/** The same for a publish that is known, without reading it first. */
export async function recordEndOf(
  db: Kysely<Schema>,
  { streamId, ...subject }: EndedSubject,
  end: Omit<End, "counters"> & { readonly counters: EndCounters },
  now: number,
): Promise<readonly OutboxName[]> {
  const { clientId } = subject;
  const { bytesIn, bytesOut, droppedFrames, tracks } = end.counters;
  const [before, after] = doneBodyAround(subject, bytesIn).map((part) => Buffer.from(part).toString("latin1"));
  const body = sql`cast(${before} as text) || (cast(${bytesOut} as bigint) + bytes_elsewhere) || cast(${after} as text)`;
  const whose = end.whose === "own" ? isOwn : sql<boolean>`not ${isOwn}`;
  const { end_code, end_who, end_detail } = writeEnding(end.ending);
  // Each statement checks the state itself.
  const [, events = 0, copies = 0, ends = 0] = await together(db, [
    addUsage(db, { clientId, bytesIn, bytesOut, whose }, now),
    sql`
      insert into outbox (id, organisation_id, client_id, url, body, next_attempt_at, created_at, trace, epoch)
      select cast(${newWebhookId()} as text), organisation_id, client_id, webhook,
        ${body}, cast(${now} as bigint), cast(${now} as bigint), trace, cast(${end.epoch} as bigint)
      from publish
      where client_id = ${clientId} and state in ('asking', 'live') and webhook is not null and ${whose}
    `.compile(db),
    sql`
      insert into webhook_copy_outbox
        (id, organisation_id, client_id, url, body, next_attempt_at, created_at, trace, epoch)
      select cast(${newWebhookId()} as text), publish.organisation_id, client_id, webhook_copy.url,
        ${body}, cast(${now} as bigint), cast(${now} as bigint), trace, cast(${end.epoch} as bigint)
      from publish join webhook_copy on webhook_copy.organisation_id = publish.organisation_id
      where client_id = ${clientId} and state in ('asking', 'live') and webhook is not null and events = 'all'
        and ${whose}
    `.compile(db),
    sql`
      update publish set state = 'ended', ended_at = cast(${now} as bigint), end_reason = cast(${end.reason} as text),
        end_code = cast(${end_code} as text), end_who = cast(${end_who} as text), end_detail = cast(${end_detail} as text),
        bytes_in = cast(${bytesIn} as bigint), bytes_out = cast(${bytesOut} as bigint),
        dropped_frames = cast(${droppedFrames} as bigint),
        video = coalesce(cast(${written(tracks.video)} as text), video),
        audio = coalesce(cast(${written(tracks.audio)} as text), audio)
      where client_id = ${clientId} and state in ('asking', 'live') and ${whose}
    `.compile(db),
    // A stream ends with its last publish; a replaced publish ends while its successor is live.
    sql`
      update stream set state = 'ended', updated_at = cast(${now} as bigint)
      where id = ${streamId} and state = 'live'
        and not exists (select 1 from publish where stream_id = ${streamId} and state = 'live')
    `.compile(db),
  ]);
  // Otherwise a former attempt, whose answer was lost, may have written them.
  if (ends === 0) return OUTBOXES;
  return OUTBOXES.filter((name) => (name === "outbox" ? events : copies) > 0);
}

/** A publish as stored; null when it is not open. */
async function storedPublish(
  db: Kysely<Schema>,
  clientId: number,
): Promise<{ readonly subject: EndedSubject; readonly counters: EndCounters } | null> {
  const row = await db.selectFrom("publish").selectAll().where("client_id", "=", clientId).executeTakeFirst();
  if (row === undefined || (row.state !== "asking" && row.state !== "live")) return null;
  const { name, app, address, stream_id: streamId } = row;
  const custom = row.arguments === null ? null : Buffer.from(row.arguments, "latin1");
  const counters = { bytesIn: Number(row.bytes_in), bytesOut: Number(row.bytes_out) };
  return {
    subject: { clientId, name, app, address, streamId, arguments: custom },
    counters: { ...counters, droppedFrames: row.dropped_frames, tracks: { video: null, audio: null } },
  };
}

/** Whether a publish of the name is live, on any node. */
export async function isNameLive(db: Kysely<Schema>, name: string): Promise<boolean> {
  const live = db.selectFrom("publish").select("client_id").where("name", "=", name).where("state", "=", "live");
  return (await live.where("epoch", "is not", null).executeTakeFirst()) !== undefined;
}

/** Identity of a publish in every log line about it. The stream by its id: names are secrets. */
export const identityOf = ({
  clientId,
  organisationId,
  streamId,
  trace,
}: Pick<Intent, "clientId" | "organisationId" | "streamId"> & Partial<Pick<Intent, "trace">>) => ({
  clientId,
  organisation: organisationId,
  stream: streamId,
  ...(trace && { trace_id: trace.traceId }),
});
