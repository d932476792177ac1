// One delivery of an event: to whom it goes, the call, and what the answer means for its row.
import type { Logger } from "pino";
import { forwardSteps } from "../../../in-time.ts";
import type { Metrics } from "../../../metrics.ts";
import type { Customer, Customers } from "../../../organisation/customers.ts";
import { traceFrom } from "../../../tracing/trace.ts";
import type { WebhookAnswer } from "../answer.ts";
import type { Webhook } from "../call.ts";
import type { DeliveryOutcome } from "./delivery-places.ts";
import type { DueEvent } from "./due-events.ts";
import { ALERT_LIFETIME_MS, LIFETIME_MS, refusalsAfter, verdictOf, wasTried } from "./retry-schedule.ts";
import type { createSettlements, Settlement } from "./settlements.ts";
import type { OutboxName } from "./waiting.ts";

export interface DeliveryDeps {
  readonly webhook: Pick<Webhook, "post">;
  readonly customers: Pick<Customers, "of">;
  readonly clock: { now(): number };
  readonly log: Logger;
  /** For one delivery, ms. */
  readonly deadlineMs: number;
  readonly metrics?: Pick<Metrics, "countGivenUp">;
}

/** Returns what delivers an event, and never rejects. `checkBy`: when the event, or whatever is left of it, is due again,
 *  epoch ms. */
export function createDelivery(
  deps: DeliveryDeps & {
    readonly table: OutboxName;
    readonly settle: ReturnType<typeof createSettlements>;
    readonly checkBy: (at: number) => void;
  },
): (row: DueEvent) => Promise<DeliveryOutcome> {
  const { table, webhook, customers, clock, log, deadlineMs, settle, checkBy } = deps;
  const setForward = forwardSteps(clock);

  return async (row) => {
    const clientId = Number(row.client_id);
    const call = callOf(row);
    const attempts = Number(row.attempts) + 1;
    let outcome: DeliveryOutcome = "withheld";
    try {
      const receiver = receiverOf(table, row, await customers.of(row.organisation_id));
      if (receiver === null) {
        await settle({ id: row.id, change: withdrawn(row, clock.now()) });
        return "answered"; // nothing is known against the customer
      }
      const answer = await webhook.post({
        organisationId: row.organisation_id,
        url: receiver.url,
        isFormer: receiver.isFormer,
        id: row.id,
        body: Buffer.from(row.body, "latin1"),
        keys: receiver.keys,
        deadlineMs,
        retryConnection: false,
        trace: traceFrom(row.trace),
        event: { call, clientId, name: nameIn(row.body), attempt: attempts },
      });
      outcome = outcomeOf(answer);
      const change = settlementOf(row, attempts, answer);
      if (change.next_attempt_at !== undefined) checkBy(change.next_attempt_at);
      await settle({ id: row.id, change });
    } catch (err) {
      checkBy(clock.now() + deadlineMs); // claimed until then
      log.error({ err, clientId }, `delivery of ${call} could not be recorded`);
    }
    return outcome;
  };

  function settlementOf(row: DueEvent, attempts: number, answer: WebhookAnswer): Settlement["change"] {
    const now = clock.now();
    const since = row.refused_since === null ? null : Number(row.refused_since);
    const refusals = refusalsAfter(answer, { count: Number(row.refusals), since }, now);
    const lifetimeMs = row.call === "health" ? ALERT_LIFETIME_MS : LIFETIME_MS;
    const aged = (at: number) => at + setForward(at);
    const refused = { ...refusals, since: refusals.since === null ? null : aged(refusals.since) };
    const event = { attempts, createdAt: aged(Number(row.created_at)), refusals: refused, lifetimeMs };
    const verdict = verdictOf(answer, event, now, Math.random());
    if (verdict.next !== "delivered") warn(row, attempts, answer, verdict.next);
    return {
      last_status: answer.outcome === "answered" ? answer.status : null,
      refusals: refusals.count,
      refused_since: refusals.since,
      ...(wasTried(answer) ? {} : { attempts: attempts - 1 }),
      ...(verdict.next === "delivered" ? { delivered_at: now } : {}),
      ...(verdict.next === "given_up" ? { given_up_at: now } : {}),
      ...(verdict.next === "retry" ? { next_attempt_at: verdict.at } : {}),
    };
  }

  function warn(row: DueEvent, attempts: number, answer: WebhookAnswer, next: "given_up" | "retry"): void {
    const trace_id = traceFrom(row.trace)?.traceId;
    const status = answer.outcome === "answered" ? answer.status : null;
    const why = answer.outcome === "answered" ? {} : { cause: answer.cause, detail: answer.detail };
    const what = table === "outbox" ? callOf(row) : `copy of ${callOf(row)}`;
    log.warn({ clientId: Number(row.client_id), trace_id, attempts, status, ...why, next }, `${what} not delivered`);
    if (next === "given_up") deps.metrics?.countGivenUp();
  }
}

export const callOf = (row: Pick<DueEvent, "call">): "publish_done" | "health" => row.call ?? "publish_done";

/** Who gets an event. */
interface Receiver {
  readonly url: string;
  /** The organisation has replaced or removed this webhook since. */
  readonly isFormer: boolean;
  readonly keys: readonly Uint8Array[];
}

/** A publish's webhook gets its events even when it has been replaced. Copies go to the address of now, and are
 *  withdrawn when there is none any more, or it gets alerts alone. */
function receiverOf(table: OutboxName, row: DueEvent, { keys, webhook, copies }: Customer): Receiver | null {
  if (table === "outbox") return { url: row.url, isFormer: row.url !== webhook, keys };
  if (copies === null || (copies.events === "alerts" && row.call !== "health")) return null;
  return { url: copies.url, isFormer: false, keys: copies.keys };
}

/** The attempt that was counted in advance was not made. */
function withdrawn(row: DueEvent, now: number): Settlement["change"] {
  const refused_since = row.refused_since === null ? null : Number(row.refused_since);
  const attempts = Number(row.attempts);
  return { last_status: row.last_status, refusals: Number(row.refusals), refused_since, attempts, given_up_at: now };
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
