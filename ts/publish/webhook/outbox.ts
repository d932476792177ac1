// Delivers the events that must arrive (W17): reads them from the store, posts them, and retries until an answer
// settles it. Rows outlive the process; the id and the body never change. Events are written elsewhere: record.ts.
// Invariant: a client id has at most one row (its publish_done), so `hold` alone keeps the order within a client id.
import { type Kysely, type Selectable, sql } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../../cluster/membership.ts";
import { inTime } from "../../in-time.ts";
import type { Metrics } from "../../metrics.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { OutboxTable, Schema } from "../../store/schema.ts";
import { traceFrom } from "../../tracing/trace.ts";
import type { WebhookAnswer } from "./answer.ts";
import type { Webhook } from "./call.ts";
import { clockStepFollower } from "./clock-step.ts";
import { PROBE_EVERY_MS } from "./customer-gate.ts";
import { refusalsAfter, verdictOf, wasTried } from "./retry-schedule.ts";

/** Events counted for the metrics; larger numbers are reported as this one. */
const COUNTED_LIMIT = 10_000;
/** Deliveries in flight: more wait in the store. One organisation's slow customer cannot use up all of them, and
 *  however many are slow, each organisation has the few reserved for it. */
const IN_FLIGHT_LIMIT = 256;
const IN_FLIGHT_PER_ORGANISATION_LIMIT = 32;
const OWN_PLACES = 2;
/** Longest sleep between two reads of the store, ms. */
const SLEEP_LIMIT_MS = 60_000;
/** Pause after the store failed, ms. */
const STORE_FAILED_PAUSE_MS = 5_000;

/** Events neither delivered nor given up, and the age of the oldest. */
export interface OutboxDepth {
  readonly events: number;
  readonly oldestMs: number;
}

export interface Outbox {
  /** Keeps the events of `clientId` back until `release`: an update is still in flight (W18). */
  hold(clientId: number): void;
  release(clientId: number): void;
  /** Delivers everything due, and keeps delivering. Returns immediately. */
  wake(): void;
  /** Tries everything due once more for at most `limitMs`, then stops for good. The rest stays in the store. */
  stop(limitMs: number): Promise<void>;
  depth(): Promise<OutboxDepth>;
}

export interface OutboxDeps {
  readonly db: Kysely<Schema>;
  /** The node whose events are delivered: each event belongs to one node, so that no two deliver it and each keeps its
   *  order. */
  readonly member: Pick<Membership, "epoch">;
  readonly webhook: Pick<Webhook, "post" | "load">;
  readonly customers: Pick<Customers, "of">;
  readonly clock: { now(): number };
  readonly log: Logger;
  /** For one delivery, ms. */
  readonly deadlineMs: number;
  readonly metrics?: Pick<Metrics, "countGivenUp">;
}

type Row = Selectable<OutboxTable>;

/** How many events wait, at most `COUNTED_LIMIT`, and since when the oldest: read from the index alone. */
export function waitingEvents(db: Kysely<Schema>) {
  const oldest = db
    .selectFrom("outbox")
    .select("created_at")
    .where("delivered_at", "is", null)
    .where("given_up_at", "is", null)
    .orderBy("created_at")
    .limit(COUNTED_LIMIT);
  return db
    .selectFrom(oldest.as("waiting"))
    .select((eb) => [eb.fn.countAll().as("events"), eb.fn.min("created_at").as("oldest")]);
}

/** `now`: epoch ms. */
export async function outboxDepth(db: Kysely<Schema>, now: number): Promise<OutboxDepth> {
  const { events, oldest } = await waitingEvents(db).executeTakeFirstOrThrow();
  return { events: Number(events), oldestMs: oldest === null ? 0 : Math.max(0, now - Number(oldest)) };
}

export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, clock, log } = deps;
  const held = new Set<number>();
  /** Event id → organisation and the delivery's promise (which never rejects). */
  const inFlight = new Map<string, { readonly organisation: string; readonly done: Promise<void> }>();
  const inFlightOf = new Map<string, number>();
  const followClock = clockStepFollower(db, deps.member);
  /** Organisations to check next; null: all with pending events. */
  let wanted: Set<string> | null = new Set();
  /** When all organisations must be checked, epoch ms. A check of some knows nothing of the others: it may only bring
   *  this forward. */
  let fullCheckAt = Number.POSITIVE_INFINITY;
  /** Organisations that were refused deliveries because others used the shared limit. */
  const crowdedOut = new Set<string>();
  /** When an organisation whose customer only times out was last tried, epoch ms. */
  const probed = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | null = null;
  let checkAgain = false;
  let stopped = false;
  let closed = false;
  /** Set for a while after the store could not be written: nothing is tried. */
  let isPaused = false;
  let resume: NodeJS.Timeout | undefined;

  return {
    hold(clientId) {
      held.add(clientId);
    },
    release(clientId) {
      held.delete(clientId);
      void checkAll();
    },
    wake() {
      void checkAll();
    },
    async stop(limitMs) {
      stopped = true;
      isPaused = false;
      clearTimeout(timer);
      clearTimeout(resume);
      await inTime(limitMs, flush(), undefined);
      closed = true;
    },
    depth: () => outboxDepth(db, clock.now()),
  };

  async function flush(): Promise<void> {
    do {
      await checkAll();
      await Promise.all([...inFlight.values()].map((delivery) => delivery.done));
    } while (!closed && (checking !== null || inFlight.size > 0));
  }

  function checkAll(): Promise<void> {
    wanted = null;
    return check();
  }

  /** A delivery has ended: checks the organisation it belonged to, and one that had to wait. */
  function checkNext(organisation: string): void {
    wanted?.add(organisation);
    const [next] = crowdedOut;
    if (next !== undefined) {
      crowdedOut.delete(next);
      wanted?.add(next);
    }
    void check();
  }

  /** One check at a time; another requested during one is remembered. Never rejects. */
  function check(): Promise<void> {
    if (closed) return Promise.resolve();
    if (isPaused) return checking ?? Promise.resolve();
    if (checking !== null) {
      checkAgain = true;
      return checking;
    }
    checking = (async () => {
      let pause: number;
      do {
        checkAgain = false;
        pause = await startDue().catch((err: unknown) => {
          log.error({ err }, "outbox could not be read");
          fullCheckAt = clock.now() + STORE_FAILED_PAUSE_MS;
          return STORE_FAILED_PAUSE_MS;
        });
      } while (checkAgain);
      checking = null;
      clearTimeout(timer);
      if (!stopped) timer = setTimeout(() => void checkAll(), pause);
    })();
    return checking;
  }

  /** The store can be read, and not written: logged once for all that failed at the same time. */
  function pauseAfter(err: unknown): void {
    if (!isPaused) log.error({ err }, "outbox could not be written");
    isPaused = true;
    clearTimeout(resume);
    if (stopped) return;
    resume = setTimeout(() => {
      isPaused = false;
      void checkAll();
    }, STORE_FAILED_PAUSE_MS);
  }

  /** Starts every due delivery within the limits; returns ms until the next check of all. */
  async function startDue(): Promise<number> {
    const now = clock.now();
    await followClock(now);
    const named = wanted;
    wanted = new Set();
    const organisations = named === null ? await waiting(now) : [...named];
    const { open, slow } = deps.webhook.load();
    const slowUrls = new Map<string, string[]>();
    for (const { organisationId, url } of slow)
      slowUrls.set(organisationId, [...(slowUrls.get(organisationId) ?? []), url]);
    for (const id of probed.keys()) if (!slowUrls.has(id)) probed.delete(id);
    for (const organisation of organisations) {
      const former = open.includes(organisation) ? [] : (slowUrls.get(organisation) ?? []);
      const places = placesOf(organisation, open.includes(organisation), now);
      for (const row of places > 0 ? await due(organisation, now, places, { except: former }) : []) start(row, now);
      // A former webhook that only times out must not hold up events for the new one.
      const probes = former.length > 0 && mayProbe(organisation, now) ? 1 : 0;
      for (const row of probes > 0 ? await due(organisation, now, probes, { only: former }) : []) start(row, now);
    }
    const next = await db
      .selectFrom("outbox")
      .select((eb) => eb.fn.min("next_attempt_at").as("at"))
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .where("epoch", "=", deps.member.epoch)
      .where("next_attempt_at", ">", now)
      .executeTakeFirst();
    const untilNext = next?.at == null ? SLEEP_LIMIT_MS : Number(next.at) - now;
    const wait = probed.size > 0 ? Math.min(untilNext, PROBE_EVERY_MS) : untilNext;
    const nextAt = now + Math.min(wait, SLEEP_LIMIT_MS);
    fullCheckAt = named === null ? nextAt : Math.min(fullCheckAt, nextAt);
    return Math.max(fullCheckAt - now, 1);
  }

  function start(row: Row, now: number): void {
    const organisation = row.organisation_id;
    const done = deliver(row, now).finally(() => {
      inFlight.delete(row.id);
      const left = (inFlightOf.get(organisation) ?? 1) - 1;
      if (left > 0) inFlightOf.set(organisation, left);
      else inFlightOf.delete(organisation);
      checkNext(organisation);
    });
    inFlight.set(row.id, { organisation, done });
    inFlightOf.set(organisation, (inFlightOf.get(organisation) ?? 0) + 1);
  }

  /** How many more deliveries the organisation may have in flight. */
  function placesOf(organisation: string, isSlow: boolean, now: number): number {
    const taken = inFlightOf.get(organisation) ?? 0;
    // What the gate would refuse need not be read, claimed and put back.
    if (isSlow) return taken === 0 && mayProbe(organisation, now) ? 1 : 0;
    const shared = Math.min(IN_FLIGHT_PER_ORGANISATION_LIMIT - taken, IN_FLIGHT_LIMIT - inFlight.size);
    const places = Math.max(shared, OWN_PLACES - taken);
    if (places <= 0 && taken < IN_FLIGHT_PER_ORGANISATION_LIMIT) crowdedOut.add(organisation);
    return places;
  }

  /** Whether a delivery of a slow organisation may be tried; if so, schedules the next probe. */
  function mayProbe(organisation: string, now: number): boolean {
    const last = probed.get(organisation) ?? Number.NEGATIVE_INFINITY;
    // A time in the future means that the clock was set back.
    if (now >= last && now < last + PROBE_EVERY_MS) return false;
    probed.set(organisation, now);
    return true;
  }

  /** The organisations with due events: skips from one to the next in the index, however many events each has. */
  async function waiting(now: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>`
      with recursive waiting(id) as (
        select min(organisation_id) from outbox
        where delivered_at is null and given_up_at is null and epoch = ${deps.member.epoch}
        union all
        select (
          select min(organisation_id) from outbox
          where delivered_at is null and given_up_at is null and epoch = ${deps.member.epoch}
            and organisation_id > waiting.id
        ) from waiting where waiting.id is not null
      )
      select id from waiting where id is not null and exists (
        select 1 from outbox
        where epoch = ${deps.member.epoch} and organisation_id = waiting.id
          and delivered_at is null and given_up_at is null and next_attempt_at <= cast(${now} as bigint)
      )
    `.execute(db);
    return rows.map(({ id }) => id);
  }

  /** `urls`: restricts the webhooks. */
  async function due(
    organisation: string,
    now: number,
    places: number,
    urls: { readonly only?: readonly string[]; readonly except?: readonly string[] },
  ): Promise<readonly Row[]> {
    const taken = [...inFlight].filter(([, delivery]) => delivery.organisation === organisation).map(([id]) => id);
    let query = db
      .selectFrom("outbox")
      .selectAll()
      .where("epoch", "=", deps.member.epoch)
      .where("organisation_id", "=", organisation)
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .where("next_attempt_at", "<=", now)
      .orderBy("next_attempt_at")
      .orderBy("client_id")
      .limit(places + held.size);
    if (urls.only !== undefined) query = query.where("url", "in", urls.only);
    if (urls.except !== undefined && urls.except.length > 0) query = query.where("url", "not in", urls.except);
    if (taken.length > 0) query = query.where("id", "not in", taken);
    const rows = await query.execute();
    return rows.filter((row) => !held.has(Number(row.client_id))).slice(0, places);
  }

  async function deliver(row: Row, now: number): Promise<void> {
    const clientId = Number(row.client_id);
    const attempts = Number(row.attempts) + 1;
    try {
      if (!(await claim(row, attempts, now))) return;
      const { keys, webhook } = await deps.customers.of(row.organisation_id);
      const answer = await deps.webhook.post({
        organisationId: row.organisation_id,
        url: row.url,
        isFormer: row.url !== webhook,
        id: row.id,
        body: Buffer.from(row.body, "latin1"),
        keys,
        deadlineMs: deps.deadlineMs,
        retryConnection: false,
        trace: traceFrom(row.trace),
        event: { call: "publish_done", clientId, name: nameIn(row.body), attempt: attempts },
      });
      await settle(row, attempts, answer);
    } catch (err) {
      log.error({ err, clientId }, "delivery of publish_done could not be recorded");
    }
  }

  /** Before it is posted: a failing store stops deliveries instead of repeating them endlessly. False when nothing may be
   *  posted. */
  async function claim(row: Row, attempts: number, now: number): Promise<boolean> {
    const claimed = { attempts, next_attempt_at: now + deps.deadlineMs };
    const own = db.updateTable("outbox").set(claimed).where("id", "=", row.id).where("epoch", "=", row.epoch);
    try {
      const { numUpdatedRows } = await own.executeTakeFirst();
      return numUpdatedRows > 0n; // 0: another node delivers it, since this one was declared dead
    } catch (err) {
      pauseAfter(err);
      return false;
    }
  }

  async function settle(row: Row, attempts: number, answer: WebhookAnswer): Promise<void> {
    const now = clock.now();
    const clientId = Number(row.client_id);
    const since = row.refused_since === null ? null : Number(row.refused_since);
    const refusals = refusalsAfter(answer, { count: Number(row.refusals), since }, now);
    const verdict = verdictOf(answer, { attempts, createdAt: Number(row.created_at), refusals }, now, Math.random());
    const last_status = answer.outcome === "answered" ? answer.status : null;
    if (verdict.next !== "delivered") {
      const why = answer.outcome === "answered" ? {} : { cause: answer.cause, detail: answer.detail };
      const trace_id = traceFrom(row.trace)?.traceId;
      const about = { clientId, trace_id, attempts, status: last_status };
      log.warn({ ...about, ...why, next: verdict.next }, "publish_done not delivered");
      if (verdict.next === "given_up") deps.metrics?.countGivenUp();
    }
    await db
      .updateTable("outbox")
      .set({
        last_status,
        ...{ refusals: refusals.count, refused_since: refusals.since },
        attempts: wasTried(answer) ? attempts : attempts - 1,
        ...(verdict.next === "delivered" ? { delivered_at: now } : {}),
        ...(verdict.next === "given_up" ? { given_up_at: now } : {}),
        ...(verdict.next === "retry" ? { next_attempt_at: verdict.at } : {}),
      })
      .where("id", "=", row.id)
      .where("epoch", "=", row.epoch)
      .execute();
  }
}

/** The stream name in a body. Our fields come last, so the last `name` is ours. */
export function nameIn(body: string): string {
  return new URLSearchParams(body).getAll("name").at(-1) ?? "";
}
