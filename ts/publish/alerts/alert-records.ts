// Puts alerts into the outboxes of those who want them: of the webhook where the organisation's setting says so, and of
// the second one. In the background, and bounded: nothing waits for an alert.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../../cluster/membership.ts";
import { inTime } from "../../in-time.ts";
import { repeatedWarning } from "../../limits/repeated-warning.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { OutboxTable, Schema } from "../../store/schema.ts";
import { type Trace, traceText } from "../../tracing/trace.ts";
import { type AlertText, healthBody, type WebhookSubject } from "../webhook/body.ts";
import type { Outbox } from "../webhook/outbox/outbox.ts";
import { ALERT_LIFETIME_MS } from "../webhook/outbox/retry-schedule.ts";
import type { OutboxName } from "../webhook/outbox/waiting.ts";
import { newWebhookId } from "../webhook/signature.ts";

/** Alerts of one organisation that wait in one outbox, or to be written; a further one is dropped. */
export const WAITING_LIMIT = 1_000;
/** Alerts that wait to be written; a further one is dropped. */
const UNWRITTEN_LIMIT = 5_000;
/** How far the time of an alert may be ahead of the clock, so that alerts of the same moment keep their order, ms. */
const AHEAD_MS = 1_000;
/** Pause after the store failed, ms. */
const RETRY_MS = 2_000;
/** So many organisations whose alerts cannot be written mean that the store fails: the others' are not tried before the
 *  pause. */
const FAILED_LIMIT = 3;

export interface Alert {
  readonly organisationId: string;
  /** The publish that it is about; null: it is about the webhook. */
  readonly subject: WebhookSubject | null;
  /** The webhook of that publish; null: for the second webhook alone. */
  readonly webhook: string | null;
  readonly trace: Trace | null;
  readonly text: AlertText;
}

export interface AlertRecords {
  /** Returns immediately. */
  add(alert: Alert): void;
  /** Writes what is left, for at most `limitMs`. */
  stop(limitMs: number): Promise<void>;
}

interface Unwritten {
  readonly alert: Alert;
  readonly at: number;
  /** What of it is not written yet; null: its receivers have not been read. */
  rows: Row[] | null;
}

type Row = Pick<OutboxTable, "id" | "organisation_id" | "client_id" | "url" | "body" | "trace" | "created_at"> & {
  readonly table: OutboxName;
};

export function createAlertRecords(deps: {
  readonly db: Kysely<Schema>;
  readonly member: Pick<Membership, "epoch">;
  readonly customers: Pick<Customers, "of">;
  readonly outboxes: Readonly<Record<OutboxName, Pick<Outbox, "added">>>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}): AlertRecords {
  const { db, member, customers, outboxes, clock, log } = deps;
  const warning = repeatedWarning(log, "alerts could not be written yet");
  let unwritten: Unwritten[] = [];
  let writing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;
  let last = 0;

  /** The time of the next alert: outboxes are ordered by it. */
  function nextTime(): number {
    const now = clock.now();
    last = Math.max(now, Math.min(last + 1, now + AHEAD_MS));
    return last;
  }

  /** Never rejects: what the store does not take is tried again. An organisation whose alerts cannot be written holds up
   *  nobody else's: they go behind the others. */
  async function write(): Promise<void> {
    const failed = new Map<string, unknown>();
    const later: Unwritten[] = [];
    await warning.around(async () => {
      for (let next = unwritten[0]; next !== undefined && failed.size < FAILED_LIMIT; next = unwritten[0]) {
        const { organisationId } = next.alert;
        const isWritten =
          !failed.has(organisationId) &&
          (await writeOne(next).catch((err: unknown) => {
            failed.set(organisationId, err);
            return false;
          }));
        unwritten.shift();
        if (isWritten) continue;
        if (clock.now() - next.at < ALERT_LIFETIME_MS) later.push(next);
        else dropped += 1;
      }
      unwritten = [...unwritten, ...later];
      for (const err of failed.values()) throw err;
    });
    if (unwritten.length > 0) {
      timer = setTimeout(start, RETRY_MS).unref();
      return;
    }
    if (dropped > 0) log.warn({ dropped }, "alerts dropped: too many wait");
    dropped = 0;
  }

  function start(): void {
    clearTimeout(timer);
    writing ??= write().finally(() => {
      writing = null;
    });
  }

  async function writeOne(of: Unwritten): Promise<true> {
    of.rows ??= await rowsOf(of.alert, of.at);
    for (let [row] = of.rows; row !== undefined; [row] = of.rows) {
      await insert(row);
      of.rows.shift();
    }
    return true;
  }

  async function rowsOf({ organisationId, subject, webhook, trace, text }: Alert, at: number): Promise<Row[]> {
    const { settings, copies } = await customers.of(organisationId);
    const row = {
      organisation_id: organisationId,
      client_id: subject?.clientId ?? 0,
      body: Buffer.from(healthBody(subject, text)).toString("latin1"),
      trace: trace === null ? null : traceText(trace),
      created_at: at,
    };
    const rows: Row[] = [];
    if (webhook !== null && settings.health_events) {
      rows.push({ ...row, table: "outbox", id: newWebhookId(), url: webhook });
    }
    if (copies !== null) rows.push({ ...row, table: "webhook_copy_outbox", id: newWebhookId(), url: copies.url });
    return rows;
  }

  async function insert({ table, ...row }: Row): Promise<void> {
    if (await isFull(table, row.organisation_id)) {
      dropped += 1;
      return;
    }
    await db
      .insertInto(table)
      .values({ ...row, next_attempt_at: clock.now(), epoch: member.epoch, call: "health" })
      // A statement whose answer was lost may have been carried out.
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
    outboxes[table].added(row.organisation_id);
  }

  async function isFull(table: OutboxName, organisationId: string): Promise<boolean> {
    const waiting = db
      .selectFrom(table)
      .select("id")
      .where("organisation_id", "=", organisationId)
      .where("call", "=", "health")
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .limit(WAITING_LIMIT);
    const { count } = await db
      .selectFrom(waiting.as("waiting"))
      .select((eb) => eb.fn.countAll().as("count"))
      .executeTakeFirstOrThrow();
    return Number(count) >= WAITING_LIMIT;
  }

  return {
    add(alert) {
      const isOwn = (of: Unwritten) => of.alert.organisationId === alert.organisationId;
      const hasTooMany = unwritten.length >= WAITING_LIMIT && unwritten.filter(isOwn).length >= WAITING_LIMIT;
      if (hasTooMany || unwritten.length >= UNWRITTEN_LIMIT) dropped += 1;
      else unwritten.push({ alert, at: nextTime(), rows: null });
      start();
    },
    async stop(limitMs) {
      start();
      await inTime(limitMs, writing ?? Promise.resolve(), undefined);
      clearTimeout(timer);
    },
  };
}
