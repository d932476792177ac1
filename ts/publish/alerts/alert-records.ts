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
import type { OutboxName } from "../webhook/outbox/waiting.ts";
import { newWebhookId } from "../webhook/signature.ts";

/** Alerts of one organisation that wait in one outbox; a further one is dropped. */
export const WAITING_LIMIT = 1_000;
/** Alerts that wait to be written; a further one is dropped. */
const UNWRITTEN_LIMIT = 5_000;
/** Pause after the store failed, ms. */
const RETRY_MS = 2_000;

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
  const unwritten: { readonly alert: Alert; readonly at: number }[] = [];
  let writing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;

  /** Never rejects: what the store does not take is tried again. */
  async function write(): Promise<void> {
    await warning.around(async () => {
      for (let next = unwritten[0]; next !== undefined; next = unwritten[0]) {
        for (const row of await rowsOf(next.alert, next.at)) await insert(row);
        unwritten.shift();
      }
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

  async function rowsOf({ organisationId, subject, webhook, trace, text }: Alert, at: number): Promise<readonly Row[]> {
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
      .values({ ...row, next_attempt_at: row.created_at, epoch: member.epoch, call: "health" })
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
      if (unwritten.length >= UNWRITTEN_LIMIT) dropped += 1;
      else unwritten.push({ alert, at: clock.now() });
      start();
    },
    async stop(limitMs) {
      start();
      await inTime(limitMs, writing ?? Promise.resolve(), undefined);
      clearTimeout(timer);
    },
  };
}
