// Posts one event to a customer's webhook and returns the outcome. Handles deadlines, signatures, the gate of each
// customer and the single retry; not what an answer means for a publish.
import type { Logger } from "pino";
import type { Customer } from "../../organisation/customers.ts";
import { step, tenths } from "../../step-times.ts";
import type { WebhookCallName } from "../../store/schema.ts";
import { newTrace, type Trace, traceHeaders } from "../../tracing/trace.ts";
import type { Resolve } from "../addresses/resolver.ts";
import type { WebhookAnswer } from "./answer.ts";
import { type Priority, priorityOf } from "./call-priority.ts";
import { type Connections, createConnections } from "./connections.ts";
import { CallPlaces, CustomerGate, type Entry } from "./customer-gate.ts";
import { Deadline } from "./deadline.ts";
import { Exchange } from "./exchange.ts";
import type { KeptResponse } from "./kept-response.ts";
import { signatureHeaders } from "./signature.ts";

/** Pause before the single retry of W13, ms: a restarting server is usually back by then. */
const RETRY_PAUSE_MS = 100;
/** Answers slower than this delay broadcasters noticeably (specification, "Limits"), ms. */
export const SLOW_ANSWER_MS = 300;

export interface WebhookCall {
  readonly organisationId: string;
  readonly url: string;
  /** The webhook-id: the same for all attempts to deliver one event. */
  readonly id: string;
  readonly body: Uint8Array;
  /** Signing keys, the current one first (W9). */
  readonly keys: readonly Uint8Array[];
  /** Limit for everything together: waiting for the gate, DNS, TCP, TLS, request, status (W11), ms. */
  readonly deadlineMs: number;
  /** Whether to try a second time when the connection failed before any request byte was written (W13). A kept connection
   *  that the customer closed is replaced in any case. */
  readonly retryConnection: boolean;
  /** Where copies of the call go; absent: nowhere. */
  readonly copies?: Customer["copies"];
  /** Called when the customer is about to be asked; never called when the gate refuses the call. */
  readonly begun?: () => void;
  /** The organisation has replaced or removed this webhook since. Absent: unknown, as at a publish. */
  readonly isFormer?: boolean;
  /** Nobody waits for the outcome but whoever tries the webhook: it goes last, whatever it is about. */
  readonly isTrial?: boolean;
  /** The trace it belongs to; absent: a new one. Every attempt is a span. */
  readonly trace?: Trace | null;
  /** What the call is about, for the observer. */
  readonly event: {
    readonly call: WebhookCallName;
    readonly clientId: number;
    readonly name: string;
    /** Number of the attempt for this id, from 1. */
    readonly attempt: number;
  };
}

/** Called with the outcome of every call, and the response, whose body may still arrive; null when there is none. Must not
 *  throw. */
export type WebhookObserver = (
  call: WebhookCall,
  answer: WebhookAnswer,
  tookMs: number,
  response: KeptResponse | null,
) => void;

export interface Webhook {
  /** Never rejects: a missing answer is a value. Resolves `deadlineMs` after the call at the latest. */
  post(call: WebhookCall): Promise<WebhookAnswer>;
  /** Calls in flight and waiting; the organisations whose current webhook has an open breaker; and every URL with an
   *  open breaker, including former webhooks. */
  load(): {
    readonly inFlight: number;
    readonly waiting: number;
    readonly open: readonly string[];
    readonly slow: readonly { readonly organisationId: string; readonly url: string }[];
  };
  /** Sets the organisation's webhook to `url`, or none (null): it starts with a closed breaker, and calls still due to
   *  former ones do not count in `load().open`. */
  changed(organisationId: string, url: string | null): void;
  /** Closes every connection; calls still in flight become unreachable. */
  close(): Promise<void>;
}

interface Gate {
  readonly organisationId: string;
  readonly url: string;
  readonly gate: CustomerGate;
  /** The organisation has replaced or removed this webhook, according to the latest call or change. */
  isFormer: boolean;
}

interface CallOptions {
  readonly log: Logger;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly observe?: WebhookObserver;
}

/** `webhookCa`: PEM certificates trusted in addition to the public ones, or null. `dev` allows private addresses. */
interface WebhookOptions extends CallOptions {
  readonly webhookCa: string | null;
  readonly dev: boolean;
  readonly resolve?: Resolve;
}

export function createWebhook(options: WebhookOptions): Webhook {
  return callsOver(createConnections(options), options, "webhook");
}

/** The webhooks, and the second ones, which get copies: those have places, breakers and connections of their own, and
 *  their connections are opened after all others. */
export function createWebhooks(options: WebhookOptions & { readonly observeCopy: WebhookObserver }) {
  const { log, clock, observeCopy } = options;
  const connections = createConnections(options);
  return {
    webhook: callsOver(connections, options, "webhook"),
    copies: callsOver(connections, { log, clock, observe: observeCopy }, "copies"),
  };
}

function callsOver(connections: Connections, options: CallOptions, which: "webhook" | "copies"): Webhook {
  const { log, clock } = options;
  const connectionsOf = (organisationId: string, isKept?: boolean) =>
    connections.of(which === "webhook" ? organisationId : `copies of ${organisationId}`, isKept);
  const priorityIn = ({ event, isTrial }: WebhookCall): Priority => {
    if (which === "copies") return "copy";
    return isTrial === true ? "delivery" : priorityOf(event.call);
  };
  /** By organisation and URL: a new webhook URL starts with a fresh gate. All gates of an organisation share the places for
   *  its calls. */
  const organisations = new Map<string, { readonly places: CallPlaces; readonly gates: Map<string, Gate> }>();

  return {
    async post(call) {
      const startedAt = performance.now(); // durations need a monotonic clock: the given one may be set back
      const trail: Trail = { trace: call.trace ?? newTrace(), waitedMs: null, attempts: [] };
      const answer = await step(
        "webhook",
        () => postWithin(new Deadline(call.deadlineMs), call, startedAt, trail),
        call.event.clientId,
      );
      const tookMs = performance.now() - startedAt;
      if (log.isLevelEnabled("debug")) log.debug(lineOf(call, answer, tookMs, trail), SAID[which]);
      if (which === "webhook" && answer.outcome === "answered" && tookMs > SLOW_ANSWER_MS)
        warnOfSlowness(log, call, tookMs, trail);
      options.observe?.(call, answer, tookMs, trail.attempts.at(-1)?.exchange.response ?? null);
      return answer;
    },
    load() {
      const all = [...organisations.values()].flatMap(({ gates }) => [...gates.values()]);
      return {
        inFlight: all.reduce((sum, { gate }) => sum + gate.inFlight, 0),
        waiting: all.reduce((sum, { gate }) => sum + gate.waiting, 0),
        open: all.filter(({ gate, isFormer }) => gate.isOpen && !isFormer).map(({ organisationId }) => organisationId),
        slow: all.filter(({ gate }) => gate.isOpen),
      };
    },
    changed(organisationId, url) {
      for (const known of organisations.get(organisationId)?.gates.values() ?? []) {
        known.isFormer = known.url !== url;
        known.gate.reset();
        forget(known);
      }
    },
    async close() {
      await connections.destroy();
    },
  };

  /** Clears the deadline when the connection is free again. */
  async function postWithin(
    deadline: Deadline,
    call: WebhookCall,
    startedAt: number,
    trail: Trail,
  ): Promise<WebhookAnswer> {
    const url = new URL(call.url);
    const known = gateOf(call);
    const { gate } = known;
    const entry = await gate.enter(startedAt, deadline, priorityIn(call));
    trail.waitedMs = performance.now() - startedAt;
    if (entry !== "entered") {
      deadline.clear();
      forget(known);
      return { outcome: "unreachable", cause: entry, detail: NOT_TRIED[entry] };
    }
    call.begun?.();
    const request = () => requestOf(call, url, trail.trace, priorityIn(call), clock.now());
    let exchange = new Exchange(connectionsOf(call.organisationId), request(), deadline);
    let { answer, retry } = await exchange.exchanged;
    trail.attempts.push({ exchange, answer });
    if (retry === "anew" || (retry === "later" && call.retryConnection)) {
      if (retry === "later") await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
      // When no time is left for a second attempt, the outcome of the first is more informative.
      if (!deadline.hasPassed) {
        // A call that lost a kept connection gets a new one: the next kept one may be closed as well.
        exchange = new Exchange(connectionsOf(call.organisationId, retry === "later"), request(), deadline);
        ({ answer } = await exchange.exchanged);
        trail.attempts.push({ exchange, answer });
      }
    }
    void exchange.ended.then(() => {
      deadline.clear();
      leave(known, answer, url);
    });
    return answer;
  }

  function gateOf({ organisationId, url, isFormer }: WebhookCall): Gate {
    const organisation = organisations.get(organisationId) ?? { places: new CallPlaces(), gates: new Map() };
    organisations.set(organisationId, organisation);
    const { places, gates } = organisation;
    const known: Gate = gates.get(url) ?? { organisationId, url, gate: new CustomerGate(places), isFormer: false };
    known.isFormer = isFormer ?? known.isFormer;
    gates.set(url, known);
    return known;
  }

  function leave(known: Gate, answer: WebhookAnswer, { host }: URL): void {
    const { gate } = known;
    const wasOpen = gate.isOpen;
    gate.leave(answer.outcome === "unreachable" && answer.cause === "deadline", performance.now());
    const about = { host, ...(which === "copies" && { copies: true }) };
    if (gate.isOpen && !wasOpen) log.warn(about, "webhook only times out: called rarely from now on");
    if (!gate.isOpen && wasOpen) log.info(about, "webhook answers again");
    forget(known);
  }

  function forget({ organisationId, url, gate }: Gate): void {
    const gates = organisations.get(organisationId)?.gates;
    if (gates === undefined || !gate.isIdle) return;
    gates.delete(url);
    if (gates.size === 0) organisations.delete(organisationId);
  }
}

/** What happened during a call, for the log. */
interface Trail {
  readonly trace: Trace;
  /** Time spent waiting for the gate, ms. */
  waitedMs: number | null;
  readonly attempts: { readonly exchange: Exchange; readonly answer: WebhookAnswer }[];
}

const SAID = { webhook: "webhook called", copies: "copy sent" } as const;

/** Only the host of the URL and the client id of the publish: the rest may be secret. */
function lineOf({ organisationId, url, id, event }: WebhookCall, answer: WebhookAnswer, tookMs: number, trail: Trail) {
  const { call, clientId, attempt } = event;
  return {
    clientId,
    organisation: organisationId,
    trace_id: trail.trace.traceId,
    call,
    webhookId: id,
    host: new URL(url).host,
    delivery: attempt,
    waitedMs: trail.waitedMs === null ? null : tenths(trail.waitedMs),
    attempts: trail.attempts.map(({ exchange: { steps }, answer: came }) => ({
      ...Object.fromEntries(
        Object.entries(steps).map(([name, value]) => [name, typeof value === "number" ? tenths(value) : value]),
      ),
      ...outcomeOf(came),
    })),
    ...outcomeOf(answer),
    tookMs: tenths(tookMs),
  };
}

function outcomeOf(answer: WebhookAnswer): object {
  return answer.outcome === "answered" ? { status: answer.status } : { cause: answer.cause, detail: answer.detail };
}

/** Why the gate refused the call. */
const NOT_TRIED: Readonly<Record<Exclude<Entry, "entered">, string>> = {
  deadline: "the limit of concurrent calls was reached and none ended in time",
  breaker_open: "not tried: the latest calls got no answer in time",
  no_place: "not tried: too many calls are already waiting",
};

/** The request as sent (W9). */
function requestOf(
  call: WebhookCall,
  url: URL,
  trace: Trace,
  priority: Priority,
  now: number,
): ConstructorParameters<typeof Exchange>[1] {
  const signed = signatureHeaders(call, call.keys, now);
  const headers = [
    ["content-type", "application/x-www-form-urlencoded"],
    ["user-agent", "headgate-webhook/1"],
    ...Object.entries(signed),
    ...Object.entries(traceHeaders(trace)),
  ];
  return { url, headers: headers.flat(), body: call.body, priority };
}

function warnOfSlowness(log: Logger, { event, url }: WebhookCall, tookMs: number, { trace }: Trail): void {
  const about = { clientId: event.clientId, trace_id: trace.traceId, call: event.call };
  log.warn({ ...about, host: new URL(url).host, tookMs: Math.round(tookMs) }, "webhook answered slowly");
}
