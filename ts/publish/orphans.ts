// The publishes and events that departed nodes left behind: found in batches, and ended or taken over by the others.
import { type Kysely, PostgresAdapter, type Selectable, sql } from "kysely";
import type { Share } from "../node-share.ts";
import type { PublishTable, Schema } from "../store/schema.ts";
import { traceFrom } from "../tracing/trace.ts";
import { type Ending, endingFromText } from "./ending/ending.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import { identityOf, isOfPresentNode, recordEnd } from "./record.ts";
import { doneBody } from "./webhook/body.ts";
import { newWebhookId } from "./webhook/signature.ts";

/** Publishes that one statement reads, and ends. */
const READ_AT_A_TIME = 500;
const ENDED_AT_A_TIME = 100;

/** How often a batch is tried while somebody else has locked some of its rows, and the pause before, ms; then those are
 *  waited for one by one. */
const BATCH_ATTEMPTS = 4;
const LOCKED_PAUSE_MS = 50;

/** An open publish whose node is gone. `about`: what the log needs: identity, and the stored counters. `ending`: who asked
 *  that node for the end, which did not answer; null: nobody did. */
export interface Orphan {
  readonly clientId: number;
  readonly about: object;
  readonly ending: Ending | null;
  readonly row: Selectable<PublishTable>;
}

/** A publish with the end that is kept for its node. */
type OrphanRow = Selectable<PublishTable> & { readonly kept_id: number | null; readonly kept_ending: string | null };

/** A share of the publishes whose node is gone (W17a), in batches: accepted ones, and ones whose answer is unknown. */
export async function* orphans(db: Kysely<Schema>, share: Share): AsyncGenerator<readonly Orphan[]> {
  let after = -1;
  for (;;) {
    const { rows } = await sql<OrphanRow>`
      select publish.*, kept_end.client_id as kept_id, kept_end.ending as kept_ending
      from publish left join kept_end on kept_end.client_id = publish.client_id and kept_end.epoch = publish.epoch
      where state in ('asking', 'live') and not ${isOfPresentNode("publish")}
        and publish.client_id > ${after} and publish.client_id % ${share.of} = ${share.index}
      order by publish.client_id limit ${READ_AT_A_TIME}
    `.execute(db);
    const found = rows.map(orphanOf);
    after = found.at(-1)?.clientId ?? after;
    for (let at = 0; at < found.length; at += ENDED_AT_A_TIME) yield found.slice(at, at + ENDED_AT_A_TIME);
    if (found.length < READ_AT_A_TIME) return;
  }
}

function orphanOf({ kept_id: keptId, kept_ending: keptEnding, ...row }: OrphanRow): Orphan {
  const trace = traceFrom(row.trace);
  const clientId = Number(row.client_id);
  const identity = { clientId, organisationId: row.organisation_id, streamId: row.stream_id };
  const counters = { bytesIn: Number(row.bytes_in), bytesOut: Number(row.bytes_out) };
  const about = { ...identityOf({ ...identity, ...(trace && { trace }) }), protocol: row.protocol, ...counters };
  return { clientId, about, ending: keptId === null ? null : endingFromText(keptEnding), row };
}

/** Ends a batch with the stored counters, as `recordEnd` does. Rejects when some could not be ended. */
export async function recordOrphanEnds(
  db: Kysely<Schema>,
  batch: readonly Orphan[],
  end: { readonly reason: RecordedEndReason; readonly epoch: number },
  now: number,
): Promise<void> {
  const asked = batch.filter(({ ending }) => ending !== null);
  let left = batch.filter(({ ending }) => ending === null);
  if (db.getExecutor().adapter instanceof PostgresAdapter) {
    // Others lock such rows only for a moment, unless they are stuck.
    for (let attempt = 1; left.length > 0 && attempt <= BATCH_ATTEMPTS; attempt += 1) {
      if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, LOCKED_PAUSE_MS));
      const ended = await endedTogether(db, left, end, now);
      left = left.filter(({ clientId }) => !ended.has(clientId));
    }
  }
  for (const { clientId, ending } of [...asked, ...left]) {
    await recordEnd(db, clientId, { ...end, ending, counters: null, whose: "orphaned" }, now);
  }
}

/** One statement, so that nothing is repeated when two nodes end the same publishes: each takes the rows that the other
 *  has not locked. Resolves with the client ids of those it has ended. */
async function endedTogether(
  db: Kysely<Schema>,
  batch: readonly Orphan[],
  { reason, epoch }: { readonly reason: RecordedEndReason; readonly epoch: number },
  now: number,
): Promise<ReadonlySet<number>> {
  const said = batch.map(({ clientId, row }) => {
    const custom = row.arguments === null ? null : Buffer.from(row.arguments, "latin1");
    const bytesOut = Number(row.bytes_out) + Number(row.bytes_elsewhere);
    const body = doneBody({ ...row, clientId, arguments: custom }, { bytesIn: Number(row.bytes_in), bytesOut });
    const text = Buffer.from(body).toString("latin1");
    return sql`(cast(${clientId} as bigint), cast(${newWebhookId()} as text), cast(${newWebhookId()} as text),
      cast(${text} as text))`;
  });
  const { rows } = await sql<{ client_id: number }>`
    with said(client_id, id, copy_id, body) as (values ${sql.join(said)}),
    locked as (
      select client_id from publish where client_id in (select client_id from said) order by client_id
      for update skip locked
    ),
    ended as (
      update publish set state = 'ended', ended_at = cast(${now} as bigint), end_reason = cast(${reason} as text)
      where client_id in (select client_id from locked) and state in ('asking', 'live')
        and not ${isOfPresentNode("publish")}
      returning client_id, organisation_id, stream_id, webhook, trace
    ),
    queued as (
      insert into outbox (id, organisation_id, client_id, url, body, next_attempt_at, created_at, trace, epoch)
      select said.id, ended.organisation_id, ended.client_id, ended.webhook, said.body, cast(${now} as bigint),
        cast(${now} as bigint), ended.trace, cast(${epoch} as bigint)
      from ended join said on said.client_id = ended.client_id where ended.webhook is not null
    ),
    copied as (
      insert into webhook_copy_outbox
        (id, organisation_id, client_id, url, body, next_attempt_at, created_at, trace, epoch)
      select said.copy_id, ended.organisation_id, ended.client_id, webhook_copy.url, said.body, cast(${now} as bigint),
        cast(${now} as bigint), ended.trace, cast(${epoch} as bigint)
      from ended join said on said.client_id = ended.client_id
        join webhook_copy on webhook_copy.organisation_id = ended.organisation_id
      where ended.webhook is not null and webhook_copy.events = 'all'
    ),
    closed as (
      update stream set state = 'ended', updated_at = cast(${now} as bigint)
      where state = 'live' and id in (select stream_id from ended) and not exists (
        select 1 from publish where publish.stream_id = stream.id and publish.state = 'live'
          and publish.client_id not in (select client_id from ended)
      )
    )
    select client_id from ended
  `.execute(db);
  return new Set(rows.map(({ client_id }) => Number(client_id)));
}

/** Takes over delivery of a share of the events of nodes that are gone, and forgets the ends that were kept for them, but
 *  for those of publishes that are still to be ended. */
export async function adoptEvents(db: Kysely<Schema>, epoch: number, share: Share): Promise<void> {
  for (const table of ["outbox", "webhook_copy_outbox"] as const) {
    await sql`
      update ${sql.table(table)} set epoch = ${epoch}
      where delivered_at is null and given_up_at is null and not ${isOfPresentNode(table)}
        and client_id % ${share.of} = ${share.index}
    `.execute(db);
  }
  await db
    .deleteFrom("kept_end")
    .where((eb) => eb.not(isOfPresentNode("kept_end")))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("publish")
            .select("publish.client_id")
            .whereRef("publish.client_id", "=", "kept_end.client_id")
            .where("publish.state", "in", ["asking", "live"]),
        ),
      ),
    )
    .execute();
}
