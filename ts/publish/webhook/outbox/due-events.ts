// What the outbox reads from the store: which organisations have due events, and which events are next. Every statement
// reads a bounded number of rows, however many events wait. Epoch times in ms.
import { type Kysely, type Selectable, sql } from "kysely";
import type { Membership } from "../../../cluster/membership.ts";
import type { OutboxTable, Schema } from "../../../store/schema.ts";
import type { OutboxName } from "./waiting.ts";

/** Events whose organisations one look at the oldest ones finds. */
const OLDEST = 256;
/** Smaller steps belong to a clock that is disciplined, or to another node's, ms. */
const STEP_MS = 2_000;
/** Organisations that one page looks through. */
const PAGE = 256;

export type DueEvent = Selectable<OutboxTable>;

/** Some webhooks, or all others. */
export interface Webhooks {
  readonly only?: readonly string[];
  readonly except?: readonly string[];
}

export interface DueEvents {
  /** The organisations of the oldest due events, the oldest first. `more`: further ones may have due events. */
  oldest(now: number): Promise<{ readonly organisations: readonly string[]; readonly more: boolean }>;
  /** The organisations with due events that follow `after` in the order of their ids, and the id to continue after; null
   *  at the end. */
  page(
    now: number,
    after: string,
  ): Promise<{ readonly organisations: readonly string[]; readonly last: string | null }>;
  /** Takes the organisation's next events, at most `quantity`, the oldest first, to be posted now: counts an attempt of
   *  each and makes it due again at `until`, so that a failing store stops deliveries instead of repeating them
   *  endlessly. `except`: publishes whose events must wait. */
  claim(
    organisation: string,
    take: {
      readonly now: number;
      readonly until: number;
      readonly quantity: number;
      readonly webhooks: Webhooks;
      readonly except: readonly number[];
    },
  ): Promise<readonly DueEvent[]>;
  /** When the next event becomes due; null when none waits. */
  next(now: number): Promise<number | null>;
}

export function dueEvents(db: Kysely<Schema>, table: OutboxName, member: Pick<Membership, "epoch">): DueEvents {
  const waiting = () =>
    db
      .selectFrom(table)
      .where("epoch", "=", member.epoch)
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null);

  const events = sql.table(table);
  const isWaiting = sql`epoch = ${member.epoch} and delivered_at is null and given_up_at is null`;
  /** Alerts of a publish go in their order, and before its publish_done: that waits for their first attempt only, so that
   *  nobody who refuses alerts delays it. */
  const isBehind = sql<boolean>`exists (
    select 1 from ${events} as earlier
    where earlier.call = 'health' and earlier.delivered_at is null and earlier.given_up_at is null
      and earlier.organisation_id = ${sql.ref(`${table}.organisation_id`)}
      and earlier.client_id = ${sql.ref(`${table}.client_id`)}
      and case when ${sql.ref(`${table}.call`)} is null then earlier.attempts = 0
        else earlier.created_at < ${sql.ref(`${table}.created_at`)}
          or (earlier.created_at = ${sql.ref(`${table}.created_at`)} and earlier.id < ${sql.ref(`${table}.id`)}) end
  )`;

  return {
    async oldest(now) {
      const rows = await waiting()
        .select("organisation_id")
        .where("next_attempt_at", "<=", now)
        .orderBy("next_attempt_at")
        .limit(OLDEST)
        .execute();
      const organisations = [...new Set(rows.map(({ organisation_id }) => organisation_id))];
      return { organisations, more: rows.length === OLDEST };
    },
    async page(now, after) {
      const next = (behind: unknown) => sql`(
        select min(organisation_id) from ${events}
        where ${isWaiting} and organisation_id > ${behind}
      )`;
      // Skips from one organisation to the next in the index, however many events each has.
      const { rows } = await sql<{ id: string; due: number }>`
        with recursive waiting(id, number) as (
          select ${next(after)}, 1
          union all
          select ${next(sql`waiting.id`)}, number + 1 from waiting where waiting.id is not null and number < ${sql.lit(PAGE)}
        )
        select id, case when exists (
          select 1 from ${events}
          where ${isWaiting} and organisation_id = waiting.id and next_attempt_at <= cast(${now} as bigint)
        ) then 1 else 0 end as due
        from waiting where id is not null order by id
      `.execute(db);
      const due = rows.filter((row) => Number(row.due) === 1);
      const last = rows.length === PAGE ? (rows.at(-1)?.id ?? null) : null;
      return { organisations: due.map(({ id }) => id), last };
    },
    async claim(organisation, { now, until, quantity, webhooks: { only, except = [] }, except: waitingPublishes }) {
      let next = waiting()
        .select("id")
        .where("organisation_id", "=", organisation)
        .where("next_attempt_at", "<=", now)
        .where(sql<boolean>`not ${isBehind}`)
        .orderBy("next_attempt_at")
        .orderBy("client_id")
        .limit(quantity);
      if (only !== undefined) next = next.where("url", "in", only);
      if (except.length > 0) next = next.where("url", "not in", except);
      if (waitingPublishes.length > 0) next = next.where("client_id", "not in", waitingPublishes);
      const claimed = await db
        .updateTable(table)
        .set((eb) => ({ attempts: eb("attempts", "+", 1), next_attempt_at: until }))
        .where("id", "in", next)
        // Settled meanwhile, or another node's, since this one was declared dead.
        .where("epoch", "=", member.epoch)
        .where("delivered_at", "is", null)
        .where("given_up_at", "is", null)
        .returningAll()
        .execute();
      return claimed.sort((a, b) => Number(a.client_id) - Number(b.client_id));
    },
    async next(now) {
      const next = await waiting()
        .select((eb) => eb.fn.min("next_attempt_at").as("at"))
        .where("next_attempt_at", ">", now)
        .executeTakeFirst();
      return next?.at == null ? null : Number(next.at);
    },
  };
}

/** Keeps the due times of waiting events right when the clock is set back, as NTP does after a start with a wrong clock: an
 *  event that was due in a minute would otherwise wait as long as the step.
 *
 *  Returns a function for each check of the outbox, `now` in epoch ms: when it is less than at the check before, or than
 *  the time at which a waiting event was created, what waits becomes due earlier by as much. */
export function clockStepFollower(db: Kysely<Schema>, table: OutboxName, member: Pick<Membership, "epoch">) {
  let latest: number | null = null;
  const waiting = () => ({ epoch: member.epoch, delivered_at: null, given_up_at: null });

  async function newest(): Promise<number> {
    const { at } = await db
      .selectFrom(table)
      .select((eb) => eb.fn.max("created_at").as("at"))
      .where((eb) => eb.and(waiting()))
      .executeTakeFirstOrThrow();
    return Number(at ?? 0);
  }

  return async (now: number): Promise<void> => {
    const step = (latest ?? (await newest())) - now;
    if (step >= STEP_MS) {
      await db
        .updateTable(table)
        .set((eb) => ({ next_attempt_at: eb("next_attempt_at", "-", step) }))
        .where((eb) => eb.and(waiting()))
        .where("next_attempt_at", ">", now)
        .execute();
    }
    latest = now;
  };
}
