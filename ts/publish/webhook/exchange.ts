// One POST on one connection: from the dispatched request to the status, the reason, and the end of the response body.
// It follows no redirect and decompresses nothing. It reads no more of a body than W10 and W26 allow, and its start is kept
// for the people of the organisation.
import type { Dispatcher } from "undici/index.js";
import type { WebhookAnswer } from "./answer.ts";
import type { Priority } from "./call-priority.ts";
import type { ConnectionSteps, WatchedConnection, WatchingRequest } from "./connection-steps.ts";
import { NotConnected } from "./connections.ts";
import type { Deadline } from "./deadline.ts";
import { failureOf } from "./failure.ts";
import { KeptResponse } from "./kept-response.ts";

/** Most body bytes read from an answer before its connection is dropped (W10). */
const ANSWER_BODY_LIMIT_BYTES = 64 * 1024;
/** Longest reason taken from a 403 for the broadcaster, in characters (W26). */
const REASON_LIMIT_CHARACTERS = 200;

/** How many bytes of a body that may hold a reason are read: more than its characters can take. */
const REASON_LIMIT_BYTES = 1_024;

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

export interface Request {
  readonly url: URL;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly priority: Priority;
}

/** The outcome. */
export interface Exchanged {
  readonly answer: WebhookAnswer;
  readonly retry: Retry;
}

/** Whether another attempt may succeed. `later`: the connection failed before a byte was written. `anew`: a connection
 *  that had been kept ended without a byte of a response, so another one is needed. */
export type Retry = "none" | "later" | "anew";

/** For a reused connection only its address. `firstByteMs`: from the request to the status line, ms. */
type ExchangeSteps = Partial<ConnectionSteps> & { readonly reused?: true; readonly firstByteMs: number | null };

/** Starts immediately. `exchanged` resolves as soon as the outcome is known, `ended` when the connection is
 *  free or closed. Neither rejects, and both have resolved by the end of `deadline`. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly exchanged: Promise<Exchanged>;
  readonly ended: Promise<void>;
  #exchanged!: (exchanged: Exchanged) => void;
  #end!: () => void;
  readonly #deadline: Deadline;
  #controller: Dispatcher.DispatchController | null = null;
  #status: number | null = null;
  #retryAfter: string | null = null;
  /** The start of a body that may hold a reason; null otherwise. */
  #chunks: Buffer[] | null = null;
  #bytes = 0;
  /** The server announced a longer body than is read. */
  #isTooLong = false;
  /** The pool slot of its connection, and the newest connection there before it. */
  #connection: { readonly connection: WatchedConnection; readonly before: ConnectionSteps | null } | null = null;
  #writtenAt: number | null = null;
  #firstByteMs: number | null = null;
  #response: KeptResponse | null = null;

  constructor(dispatcher: Dispatcher, request: Request, deadline: Deadline) {
    this.exchanged = new Promise((resolve) => {
      this.#exchanged = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#deadline = deadline;
    deadline.whenOver(this.#late);
    const { url, headers, body, priority } = request;
    const dispatched: WatchingRequest = {
      origin: url.origin,
      path: url.pathname + url.search,
      method: "POST",
      headers: [...headers],
      body,
      queued: { priority, deadline },
      onConnection: (connection) => {
        this.#connection = { connection, before: connection.newest };
      },
    };
    dispatcher.dispatch(dispatched, this);
  }

  /** What is kept of the response, from its status on; null before, and without one. */
  get response(): KeptResponse | null {
    return this.#response;
  }

  /** How far it got, and the duration of each step, without secrets. */
  get steps(): ExchangeSteps {
    const { connection, before } = this.#connection ?? { connection: null, before: null };
    const newest = connection?.newest ?? null;
    const isReused = newest !== null && newest === before;
    const address = newest?.address ?? null;
    return { ...(isReused ? { address, reused: true } : newest), firstByteMs: this.#firstByteMs };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#writtenAt = performance.now();
    // The connection came too late: not one byte of this call is written to it.
    if (this.#deadline.hasPassed) controller.abort(new Error("too late"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    if (this.#writtenAt !== null) this.#firstByteMs = performance.now() - this.#writtenAt;
    this.#response = new KeptResponse(headers);
    this.#retryAfter = single(headers["retry-after"]);
    this.#isTooLong = Number(single(headers["content-length"])) > ANSWER_BODY_LIMIT_BYTES;
    const type = single(headers["content-type"]) ?? "";
    const mayHoldReason = status === 403 && /^text\/plain\s*(;|$)/i.test(type);
    if (mayHoldReason && headers["content-encoding"] === undefined) this.#chunks = [];
    else this.#settle();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#response?.add(chunk);
    this.#chunks?.push(chunk);
    if (this.#chunks !== null && (chunk.includes(0x0a) || this.#bytes >= REASON_LIMIT_BYTES)) this.#settle();
    const isKnownTooLong = this.#isTooLong && this.#chunks === null;
    if (isKnownTooLong || this.#bytes > ANSWER_BODY_LIMIT_BYTES)
      controller.abort(new Error("the response body is too long"));
  }

  onResponseEnd(): void {
    this.#response?.end(true);
    this.#finish();
  }

  onRequestUpgrade(_: unknown, __: number, ___: unknown, socket: { destroy(): void }): void {
    socket.destroy();
    this.#finish();
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#status === null) this.#fail(error);
    this.#finish();
  }

  readonly #late = (): void => {
    if (this.#status === null) this.#answer(this.#tooLate());
    this.#controller?.abort(new Error("too late"));
    this.#finish();
  };

  /** A body cut short does not change the status; the part of its first line that arrived is used. */
  #settle(): void {
    if (this.#status === null) {
      this.#answer({ outcome: "unreachable", cause: "connection", detail: "the connection closed without an answer" });
      return;
    }
    const reason =
      this.#chunks === null ? null : firstLine(Buffer.concat(this.#chunks).subarray(0, REASON_LIMIT_BYTES));
    this.#chunks = null;
    this.#answer({ outcome: "answered", status: this.#status, reason, retryAfter: this.#retryAfter });
  }

  #fail(error: Error): void {
    if (this.#deadline.hasPassed) {
      this.#answer(this.#tooLate());
      return;
    }
    const isConnected = !(error instanceof NotConnected);
    const { cause, detail } = failureOf(isConnected ? error : error.cause);
    const isLost = isConnected && this.steps.reused === true && this.#connection?.connection.hasResponse === false;
    const later = !isConnected && cause !== "address_refused" ? "later" : "none";
    this.#exchanged({ answer: { outcome: "unreachable", cause, detail }, retry: isLost ? "anew" : later });
  }

  #tooLate(): WebhookAnswer {
    const detail = this.#controller === null ? "no connection in time" : "connected, but no answer in time";
    return { outcome: "unreachable", cause: "deadline", detail };
  }

  #answer(answer: WebhookAnswer): void {
    this.#exchanged({ answer, retry: "none" });
  }

  #finish(): void {
    this.#response?.end(false);
    this.#settle();
    this.#deadline.forget(this.#late);
    this.#end();
  }
}

function firstLine(body: Buffer): string | null {
  const line = body.toString("utf8").split(/[\r\n]/, 1)[0] ?? "";
  const printable = line.replace(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, "").trim();
  const short = [...printable].slice(0, REASON_LIMIT_CHARACTERS).join("").trim();
  return short === "" ? null : short;
}

function single(header: string | string[] | undefined): string | null {
  return (Array.isArray(header) ? header[0] : header) ?? null;
}
