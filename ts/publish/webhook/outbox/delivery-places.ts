// How many deliveries may be in flight, in all and for each organisation: the more the more customers answer, and fewer as
// soon as this process is late with its other work. Pure; times are monotonic, in ms.

/** Deliveries in flight in all; further ones wait in the store. */
export const IN_FLIGHT_LIMIT = 256;
/** Of one organisation, once its customer has answered as many. */
const ORGANISATION_LIMIT = 32;
/** In flight of organisations whose latest delivery got no answer: they are tried, and take no places from others. */
const FAILING_LIMIT = 64;
/** In flight of those and of organisations about which nothing is known yet: the rest is for customers that answer. */
const UNPROVEN_LIMIT = 192;
/** A delivery that has been in flight for longer waits for its customer and costs nothing: it no longer counts in the
 *  pace. */
const YOUNG_MS = 1_000;
/** The pace at first and at least. */
const PACE_LEAST = 8;
/** The share of the pace that is left after this process was late. */
const PACE_KEPT = 0.7;
/** The share of an organisation's places that is free again before more of its events are read: a statement for each would
 *  cost more than the delivery. */
const FREE_SHARE = 1 / 4;
/** Organisations without a delivery in flight of which the latest outcome is remembered. */
const REMEMBERED_LIMIT = 4_096;

/** What the latest outcome says of an organisation's customer. */
type Standing = "untried" | "answering" | "failing";
/** `slowed`: answered, but with a status that asks for fewer calls. `withheld`: no attempt was made. */
export type DeliveryOutcome = "answered" | "slowed" | "unanswered" | "withheld";

interface Organisation {
  standing: Standing;
  /** How many it may have in flight. */
  window: number;
  inFlight: number;
}

export interface DeliveryPlace {
  readonly organisation: string;
  readonly standing: Standing;
  readonly begunAt: number;
  isYoung: boolean;
}

export class DeliveryPlaces {
  readonly #organisations = new Map<string, Organisation>();
  readonly #inFlight: Record<Standing, number> = { untried: 0, answering: 0, failing: 0 };
  /** Oldest first. */
  readonly #young = new Set<DeliveryPlace>();
  #pace = PACE_LEAST;
  /** Whether this process has been late since the start: then the pace grows slowly. */
  #wasLate = false;

  get inFlight(): number {
    const { untried, answering, failing } = this.#inFlight;
    return untried + answering + failing;
  }

  /** Whether enough of the organisation's places are free to read more of its events. */
  isWorthATurn(organisation: string): boolean {
    const { window, inFlight } = this.#organisations.get(organisation) ?? FRESH;
    return window - inFlight >= window * FREE_SHARE;
  }

  /** How many more may begin now, of any organisation. */
  room(now: number): number {
    for (const place of this.#young) {
      if (now - place.begunAt < YOUNG_MS) break;
      this.#grow(place);
    }
    return Math.min(IN_FLIGHT_LIMIT - this.inFlight, Math.floor(this.#pace) - this.#young.size);
  }

  /** How many more of this organisation may begin. `others`: it may have more, but for others' deliveries. */
  placesOf(organisation: string, now: number): { readonly places: number; readonly others: boolean } {
    const { standing, window, inFlight } = this.#organisations.get(organisation) ?? FRESH;
    const { untried, failing } = this.#inFlight;
    const own = window - inFlight;
    const unproven = UNPROVEN_LIMIT - untried - failing;
    const ofStanding = {
      answering: IN_FLIGHT_LIMIT,
      untried: unproven,
      failing: Math.min(unproven, FAILING_LIMIT - failing),
    }[standing];
    const places = Math.max(0, Math.min(own, ofStanding, this.room(now)));
    return { places, others: own > places };
  }

  begin(organisation: string, now: number): DeliveryPlace {
    const known = this.#organisations.get(organisation) ?? { ...FRESH };
    known.inFlight += 1;
    this.#organisations.set(organisation, known);
    const place = { organisation, standing: known.standing, begunAt: now, isYoung: true };
    this.#inFlight[place.standing] += 1;
    this.#young.add(place);
    return place;
  }

  end(place: DeliveryPlace, outcome: DeliveryOutcome): void {
    const wasUsed = this.#young.size >= this.#pace / 2;
    this.#inFlight[place.standing] -= 1;
    this.#grow(place);
    const known = this.#organisations.get(place.organisation) ?? { ...FRESH };
    known.inFlight -= 1;
    if (outcome === "answered") {
      known.window = Math.min(known.window + 1, ORGANISATION_LIMIT);
      if (wasUsed) this.#pace = Math.min(this.#pace + (this.#wasLate ? 1 / this.#pace : 1), IN_FLIGHT_LIMIT);
    } else known.window = outcome === "slowed" ? Math.max(1, Math.floor(known.window / 2)) : 1;
    known.standing = outcome === "unanswered" || outcome === "withheld" ? "failing" : "answering";
    this.#remember(place.organisation, known);
  }

  /** This process was late with its work: fewer deliveries at a time leave it time. */
  late(): void {
    this.#wasLate = true;
    this.#pace = Math.max(PACE_LEAST, this.#pace * PACE_KEPT);
  }

  #grow(place: DeliveryPlace): void {
    if (place.isYoung) this.#young.delete(place);
    place.isYoung = false;
  }

  #remember(organisation: string, known: Organisation): void {
    this.#organisations.delete(organisation);
    this.#organisations.set(organisation, known);
    const [first, { inFlight } = FRESH] = this.#organisations.entries().next().value ?? [];
    const isTooMany = this.#organisations.size > REMEMBERED_LIMIT + IN_FLIGHT_LIMIT;
    if (isTooMany && first !== undefined && inFlight === 0) this.#organisations.delete(first);
  }
}

/** One delivery shows whether the customer answers. */
const FRESH: Organisation = { standing: "untried", window: 1, inFlight: 0 };
