// Delivers the events that must arrive (W17): reads them from the store, posts them, and retries until an answer
// settles it. Rows outlive the process; the id and the body never change. Events are written elsewhere: record.ts.
// Invariant: a client id has at most one row (its publish_done), so `hold` alone keeps the order within a client id.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../../cluster/membership.ts";
import { inTime } from "../../in-time.ts";
import type { Metrics } from "../../metrics.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { Schema } from "../../store/schema.ts";
import { traceFrom } from "../../tracing/trace.ts";
import type { WebhookAnswer } from "./answer.ts";
import type { Webhook } from "./call.ts";
import { PROBE_EVERY_MS } from "./customer-gate.ts";
import { type DeliveryOutcome, DeliveryPlaces } from "./deliveries/delivery-places.ts";
import { clockStepFollower, type DueEvent, dueEvents, type Webhooks } from "./deliveries/due-events.ts";
import { createSettlements, type Settlement } from "./deliveries/settlements.ts";
import { QUEUE_LIMIT, Round, SLEEP_LIMIT_MS } from "./outbox-round.ts";
import { refusalsAfter, verdictOf, wasTried } from "./retry-schedule.ts";

/** Events counted for the metrics; larger numbers are reported as this one. */
const COUNTED_LIMIT = 10_000;
/** How often the pace is checked while deliveries are in flight, ms; this process is late when that comes this much
 *  later. */
const PACE_CHECK_MS = 50;
const LATE_MS = 30;
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
  /** `organisation`: whose event it is, if known: then nobody else's are looked for. */
  release(clientId: number, organisation?: string | undefined): void;
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
  const events = dueEvents(db, deps.member);
  const settle = createSettlements(db, deps.member);
  const followClock = clockStepFollower(db, deps.member);
  const places = new DeliveryPlaces();
  const held = new Set<number>();
  /** Event id → the delivery's promise (which never rejects). */
  const inFlight = new Map<string, Promise<void>>();
  const round = new Round(events);
  /** Organisations that may have more due events than have begun. */
  const unfinished = new Set<string>();
  /** When an organisation whose customer only times out was last tried, epoch ms. */
  const probed = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  /** When `timer` ends, epoch ms. */
  let sleepsUntil = Number.NEGATIVE_INFINITY;
  let checking: Promise<void> | null = null;
  let checkAgain = false;
  let pacing: NodeJS.Timeout | undefined;
  let stopped = false;
  let closed = false;
  /** Set for a while after the store could not be written: nothing is tried. */
  let isPaused = false;
  let resume: NodeJS.Timeout | undefined;

  return {
    hold(clientId) {
      held.add(clientId);
    },
    release(clientId, organisation) {
      held.delete(clientId);
      if (organisation === undefined) void checkAll();
      else void checkNext(organisation);
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
      clearTimeout(pacing);
    },
    depth: () => outboxDepth(db, clock.now()),
  };

  async function flush(): Promise<void> {
    do {
      await checkAll();
      await Promise.all(inFlight.values());
    } while (!closed && (checking !== null || inFlight.size > 0));
  }

  function checkAll(): Promise<void> {
    round.look();
    return check();
  }

  /** The organisation may have due events: it gets a turn. */
  function checkNext(organisation: string): Promise<void> {
    round.add(organisation);
    return check();
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
      do {
        checkAgain = false;
        await startDue().catch((err: unknown) => {
          log.error({ err }, "outbox could not be read");
          round.postpone(clock.now() + STORE_FAILED_PAUSE_MS);
        });
      } while (checkAgain && !isPaused);
      checking = null;
      clearTimeout(timer);
      // A look that found no room waits for a delivery to end.
      const pause = round.isLookWanted
        ? PROBE_EVERY_MS
        : Math.min(Math.max(round.lookAt - clock.now(), 1), SLEEP_LIMIT_MS);
      if (stopped) return;
      sleepsUntil = clock.now() + pause;
      timer = setTimeout(() => void checkAll(), pause);
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

  /** Starts due deliveries, organisation by organisation, until there is no room or none is left. */
  async function startDue(): Promise<void> {
    const now = clock.now();
    await followClock(now);
    const slow = slowWebhooks();
    for (const id of probed.keys()) if (!slow.urls.has(id)) probed.delete(id);
    /** Those that wait for others' places. */
    const waiting = new Set<string>();
    while (!closed && !isPaused && places.room(performance.now()) > 0) {
      const organisation = await round.next(now, probed.size > 0);
      if (organisation === undefined) break;
      if (await takeTurn(organisation, slow, now)) waiting.add(organisation);
      if (waiting.size >= QUEUE_LIMIT) break;
    }
    for (const organisation of waiting) round.add(organisation);
  }

  /** Starts what the organisation may have in flight; resolves with whether it waits for others' places. */
  async function takeTurn(organisation: string, slow: Slow, now: number): Promise<boolean> {
    const isSlow = slow.open.has(organisation);
    const former = isSlow ? [] : (slow.urls.get(organisation) ?? []);
    const { places: free, others } = places.placesOf(organisation, performance.now());
    unfinished.add(organisation);
    if (free === 0) return others;
    // What the gate would refuse need not be read, claimed and put back.
    const mayTry = !isSlow || mayProbe(organisation, now);
    const isLast = mayTry && (await start(organisation, isSlow ? 1 : free, { except: former }, now));
    if (isLast && former.length === 0) unfinished.delete(organisation);
    // A former webhook that only times out must not hold up events for the new one.
    if (former.length > 0 && mayProbe(organisation, now)) await start(organisation, 1, { only: former }, now);
    return others && !isSlow && unfinished.has(organisation);
  }

  interface Slow {
    readonly open: ReadonlySet<string>;
    readonly urls: ReadonlyMap<string, readonly string[]>;
  }

  /** The organisations with webhooks that only time out: their current one is, or these are. */
  function slowWebhooks(): Slow {
    const { open, slow } = deps.webhook.load();
    const urls = new Map<string, string[]>();
    for (const { organisationId, url } of slow) urls.set(organisationId, [...(urls.get(organisationId) ?? []), url]);
    return { open: new Set(open), urls };
  }

  /** Whether a delivery of a slow organisation may be tried; if so, schedules the next probe. */
  function mayProbe(organisation: string, now: number): boolean {
    const last = probed.get(organisation) ?? Number.NEGATIVE_INFINITY;
    round.lookBy(now + PROBE_EVERY_MS);
    // A time in the future means that the clock was set back.
    if (now >= last && now < last + PROBE_EVERY_MS) return false;
    probed.set(organisation, now);
    return true;
  }

  /** Claims and starts at most `quantity` deliveries of the organisation; resolves with whether it has no more due events. */
  async function start(organisation: string, quantity: number, webhooks: Webhooks, now: number): Promise<boolean> {
    // Those held back or in flight may be the oldest, and one more tells whether it is the last time.
    const passedOver = held.size + (inFlight.size > 0 ? places.inFlightOf(organisation) : 0);
    const limit = quantity + passedOver + 1;
    const due = await events.of(organisation, now, limit, webhooks);
    const free = due.filter((row) => !held.has(Number(row.client_id)) && !inFlight.has(row.id));
    const rows = free.slice(0, quantity);
    const isLast = due.length < limit && rows.length === free.length;
    if (rows.length === 0) return isLast;
    let claimed: ReadonlySet<string>;
    try {
      claimed = await events.claim(
        rows.map(({ id }) => id),
        now + deps.deadlineMs,
      );
    } catch (err) {
      pauseAfter(err);
      return false;
    }
    for (const row of rows) {
      if (!claimed.has(row.id)) continue;
      round.begun();
      const place = places.begin(organisation, performance.now());
      const done = deliver(row).then((outcome) => {
        inFlight.delete(row.id);
        places.end(place, outcome);
        if (unfinished.has(organisation) && places.isWorthATurn(organisation)) {
          if (outcome === "answered") round.goOn(organisation);
          void checkNext(organisation);
        } else if (round.isWorkLeft || round.lookAt < sleepsUntil || round.lookAt <= clock.now()) void check();
      });
      inFlight.set(row.id, done);
    }
    keepPace();
    return isLast;
  }

  /** While deliveries are in flight: fewer at a time when this process is late with its work, and others as soon as the
   *  first have become old. */
  function keepPace(): void {
    if (pacing !== undefined || closed) return;
    const expectedAt = performance.now() + PACE_CHECK_MS;
    pacing = setTimeout(() => {
      pacing = undefined;
      if (performance.now() - expectedAt > LATE_MS) places.late();
      if (inFlight.size === 0) return;
      keepPace();
      if (round.isWorkLeft && places.room(performance.now()) > 0) void check();
    }, PACE_CHECK_MS);
  }

  async function deliver(row: DueEvent): Promise<DeliveryOutcome> {
    const clientId = Number(row.client_id);
    const attempts = Number(row.attempts) + 1;
    let outcome: DeliveryOutcome = "withheld";
    try {
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
      outcome = outcomeOf(answer);
      const change = settlementOf(row, attempts, answer);
      if (change.next_attempt_at !== undefined) round.lookBy(change.next_attempt_at);
      await settle({ id: row.id, change });
    } catch (err) {
      round.lookBy(clock.now() + deps.deadlineMs); // claimed until then
      log.error({ err, clientId }, "delivery of publish_done could not be recorded");
    }
    return outcome;
  }

  function settlementOf(row: DueEvent, attempts: number, answer: WebhookAnswer): Settlement["change"] {
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
    return {
      last_status,
      refusals: refusals.count,
      refused_since: refusals.since,
      ...(wasTried(answer) ? {} : { attempts: attempts - 1 }),
      ...(verdict.next === "delivered" ? { delivered_at: now } : {}),
      ...(verdict.next === "given_up" ? { given_up_at: now } : {}),
      ...(verdict.next === "retry" ? { next_attempt_at: verdict.at } : {}),
    };
  }
}

/** 429 and 5xx ask for fewer calls. */
function outcomeOf(answer: WebhookAnswer): DeliveryOutcome {
  if (answer.outcome === "answered") return answer.status === 429 || answer.status >= 500 ? "slowed" : "answered";
  return wasTried(answer) ? "unanswered" : "withheld";
}

/** The stream name in a body. Our fields come last, so the last `name` is ours. */
export function nameIn(body: string): string {
  return new URLSearchParams(body).getAll("name").at(-1) ?? "";
}
