// Starts due deliveries, organisation by organisation, as many as there is room for. What is held back, in flight, or of
// a webhook that only times out is passed over.
import type { Webhook } from "../call.ts";
import { PROBE_EVERY_MS } from "../customer-gate.ts";
import type { Checks } from "./checks.ts";
import { type DeliveryOutcome, DeliveryPlaces } from "./delivery-places.ts";
import type { DueEvent, DueEvents, Webhooks } from "./due-events.ts";
import { QUEUE_LIMIT, type Round } from "./round.ts";

/** How often the pace is checked while deliveries are in flight, ms; this process is late when that comes this much
 *  later. */
const PACE_CHECK_MS = 50;
const LATE_MS = 30;
/** When an organisation was last tried that was not. */
const NEVER = Number.NEGATIVE_INFINITY;

export interface TurnsDeps {
  readonly events: Pick<DueEvents, "of" | "claim">;
  readonly followClock: (now: number) => Promise<void>;
  readonly round: Round;
  readonly checks: () => Checks;
  readonly webhook: Pick<Webhook, "load">;
  readonly clock: { now(): number };
  readonly deliver: (row: DueEvent) => Promise<DeliveryOutcome>;
  readonly deadlineMs: number;
}

/** The organisations with webhooks that only time out: their current one is, or these are. */
interface Slow {
  readonly open: ReadonlySet<string>;
  readonly urls: ReadonlyMap<string, readonly string[]>;
}

interface Started {
  /** Deliveries. */
  readonly begun: number;
  /** The organisation has no more due events. */
  readonly isLast: boolean;
}

const NOTHING: Started = { begun: 0, isLast: false };

interface Delivery {
  readonly organisation: string;
  readonly clientId: number;
  /** Never rejects. */
  readonly done: Promise<void>;
}

export class Turns {
  readonly #deps: TurnsDeps;
  readonly #places = new DeliveryPlaces();
  /** Client id → how many hold its events back. */
  readonly #held = new Map<number, number>();
  /** Held client ids of which an event was passed over. */
  readonly #passedOver = new Set<number>();
  /** Event id → its delivery: further events of the publish wait for it. */
  readonly #inFlight = new Map<string, Delivery>();
  /** Organisations that may have more due events than have begun. */
  readonly #unfinished = new Set<string>();
  /** Organisations with events left and few free places: others get theirs first. */
  readonly #postponed = new Set<string>();
  /** When an organisation whose customer only times out was last tried, epoch ms. */
  readonly #probed = new Map<string, number>();
  #pacing: NodeJS.Timeout | undefined;

  constructor(deps: TurnsDeps) {
    this.#deps = deps;
  }

  hold(clientId: number): void {
    this.#held.set(clientId, (this.#held.get(clientId) ?? 0) + 1);
  }

  /** Whether it is held no longer, and an event of it was passed over meanwhile. */
  release(clientId: number): boolean {
    const left = (this.#held.get(clientId) ?? 1) - 1;
    if (left > 0) {
      this.#held.set(clientId, left);
      return false;
    }
    this.#held.delete(clientId);
    return this.#passedOver.delete(clientId);
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /** Resolves when those that are in flight now have ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#inFlight.values()].map(({ done }) => done));
  }

  close(): void {
    clearTimeout(this.#pacing);
  }

  /** Until there is no room, or none is left. */
  async startDue(): Promise<void> {
    const { clock, round } = this.#deps;
    const checks = this.#deps.checks();
    await this.#deps.followClock(clock.now());
    const slow = this.#slowWebhooks();
    for (const id of this.#probed.keys()) if (!slow.urls.has(id)) this.#probed.delete(id);
    /** Those that wait for others' places. */
    const waiting = new Set<string>();
    while (checks.isOpen && this.#places.room(performance.now()) > 0) {
      const organisation = await round.next(clock.now(), this.#probed.size > 0);
      if (organisation === undefined) break;
      // The time of the turn: what was written since these turns began is due as well, and nobody asks for it again.
      if (await this.#takeTurn(organisation, slow, clock.now())) waiting.add(organisation);
      if (waiting.size >= QUEUE_LIMIT) break;
    }
    for (const organisation of waiting) round.add(organisation);
  }

  /** Starts what the organisation may have in flight; resolves with whether it waits for others' places. */
  async #takeTurn(organisation: string, slow: Slow, now: number): Promise<boolean> {
    const isSlow = slow.open.has(organisation);
    const former = isSlow ? [] : (slow.urls.get(organisation) ?? []);
    const { places: free, others } = this.#places.placesOf(organisation, performance.now());
    this.#unfinished.add(organisation);
    if (free === 0) return others;
    // What the gate would refuse need not be read, claimed and put back.
    const { isLast } = isSlow
      ? await this.#probe(organisation, {}, now)
      : await this.#start(organisation, free, { except: former }, now);
    if (isLast && former.length === 0) this.#unfinished.delete(organisation);
    // A former webhook that only times out must not hold up events for the new one.
    if (former.length > 0) await this.#probe(organisation, { only: former }, now);
    return others && !isSlow && this.#unfinished.has(organisation);
  }

  #slowWebhooks(): Slow {
    const { open, slow } = this.#deps.webhook.load();
    const urls = new Map<string, string[]>();
    for (const { organisationId, url } of slow) urls.set(organisationId, [...(urls.get(organisationId) ?? []), url]);
    return { open: new Set(open), urls };
  }

  /** Starts one delivery of a slow organisation, unless one was started a moment ago, and schedules the next probe. */
  async #probe(organisation: string, webhooks: Webhooks, now: number): Promise<Started> {
    const last = this.#probed.get(organisation) ?? NEVER;
    this.#deps.round.checkBy(now + PROBE_EVERY_MS);
    // A time in the future means that the clock was set back.
    if (now >= last && now < last + PROBE_EVERY_MS) return NOTHING;
    const started = await this.#start(organisation, 1, webhooks, now);
    this.#probed.set(organisation, started.begun > 0 ? now : NEVER);
    return started;
  }

  /** Claims and starts at most `quantity` deliveries of the organisation. */
  async #start(organisation: string, quantity: number, webhooks: Webhooks, now: number): Promise<Started> {
    const { events, deadlineMs } = this.#deps;
    const inFlight = [...this.#inFlight.values()].filter((delivery) => delivery.organisation === organisation);
    const busy = inFlight.map(({ clientId }) => clientId);
    // Those held back may be the oldest, and one more tells whether it is the last time.
    const limit = quantity + this.#held.size + 1;
    const due = await events.of(organisation, now, limit, { webhooks, busy });
    const free = due.filter((row) => this.#isFree(row));
    const rows = free.slice(0, quantity);
    const isLast = due.length < limit && rows.length === free.length;
    // Nothing for somebody who has its turn: the clock may have been set back by a moment since the event was written.
    if (due.length === 0) this.#deps.round.checkBy(now + PROBE_EVERY_MS);
    if (rows.length === 0) return { begun: 0, isLast };
    let claimed: ReadonlySet<string>;
    try {
      claimed = await events.claim(
        rows.map(({ id }) => id),
        now + deadlineMs,
      );
    } catch (err) {
      this.#deps.checks().pauseAfter(err);
      return NOTHING;
    }
    for (const row of rows) if (claimed.has(row.id)) this.#begin(organisation, row);
    this.#keepPace();
    return { begun: claimed.size, isLast };
  }

  #isFree(row: DueEvent): boolean {
    const clientId = Number(row.client_id);
    if (!this.#held.has(clientId)) return true;
    this.#passedOver.add(clientId);
    return false;
  }

  #begin(organisation: string, row: DueEvent): void {
    this.#deps.round.begun();
    const place = this.#places.begin(organisation, performance.now());
    const done = this.#deps.deliver(row).then((outcome) => {
      const checks = this.#deps.checks();
      this.#inFlight.delete(row.id);
      this.#places.end(place, outcome);
      // What could not even be tried is no reason to read further events: the next look finds them.
      if (outcome === "withheld") {
        this.#deps.round.checkBy(this.#deps.clock.now() + PROBE_EVERY_MS);
        return checks.checkIfDue();
      }
      const isUnfinished = this.#unfinished.has(organisation);
      const goesOn = isUnfinished && this.#places.isWorthATurn(organisation);
      if (isUnfinished && !goesOn) this.#postponed.add(organisation);
      if (goesOn && outcome === "answered") this.#deps.round.goOn(organisation);
      // Further events of the publish may have waited for an alert.
      if (goesOn || row.call === "health") void checks.checkNext(organisation);
      else checks.checkIfDue();
    });
    this.#inFlight.set(row.id, { organisation, clientId: Number(row.client_id), done });
  }

  /** While deliveries are in flight: fewer at a time when this process is late with its work, and others as soon as the
   *  first have become old. */
  #keepPace(): void {
    const { checks, round } = this.#deps;
    if (this.#pacing !== undefined || checks().isClosed) return;
    const expectedAt = performance.now() + PACE_CHECK_MS;
    this.#pacing = setTimeout(() => {
      this.#pacing = undefined;
      if (performance.now() - expectedAt > LATE_MS) this.#places.late();
      if (this.isIdle) return;
      this.#keepPace();
      for (const organisation of this.#postponed) void checks().checkNext(organisation);
      this.#postponed.clear();
      if (round.isWorkLeft && this.#places.room(performance.now()) > 0) void checks().check();
    }, PACE_CHECK_MS);
  }
}
