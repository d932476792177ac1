// All errors of the client, by number: one table from name to code and sentence, and the one error class. Codes are
// stable: 1xxx the page's own call, 2xxx camera, microphone and screen, 3xxx the browser, 4xxx refused by the service,
// 5xxx the network.

/** Code of each error, and a sentence for the broadcaster. */
export const ERRORS = {
  config_invalid: [1001, "The configuration is not valid"],
  not_set_up: [1002, "Call setup() first"],
  wrong_state: [1003, "This cannot be done in the current state"],
  not_live: [1004, "Nothing is being broadcast"],
  preview_missing: [1005, "The page has no video element with this id for the preview"],
  stopped: [1006, "The broadcast was stopped before it went live"],
  token_missing: [1007, "The page could not get a web token"],
  nothing_to_send: [1008, "The media stream has neither video nor audio"],

  permission_denied: [
    2001,
    "The browser is not allowed to use the camera or microphone: allow it in the address bar and try again",
  ],
  device_missing: [2002, "No camera or microphone was found: connect one and try again"],
  device_busy: [2003, "Another program is using the camera or microphone: close it and try again"],
  device_unsuitable: [2004, "The chosen device no longer exists or does not support the requested settings"],
  device_lost: [2005, "A camera or microphone was disconnected"],
  page_not_secure: [2006, "The browser allows the camera only on HTTPS pages"],
  screen_denied: [2007, "The screen was not shared: choose a screen or window when the browser asks"],
  media_failed: [2008, "The camera or microphone could not be started"],

  webrtc_missing: [3001, "This browser cannot broadcast: it has no WebRTC"],
  h264_missing: [
    3002,
    "This browser cannot send H.264 video. In Firefox allow the OpenH264 plug-in (about:addons, Plugins) and reload the " +
      "page, or use Chrome, Edge or Safari",
  ],
  opus_missing: [3003, "This browser cannot send Opus audio"],
  connection_refused: [3004, "The browser did not accept the service's answer"],

  denied: [4001, "The broadcast was not allowed"],
  token_refused: [4002, "The web token is missing, has expired or is not valid: get a new one"],
  stream_unknown: [4003, "There is no such stream, or the address of the service is wrong"],
  stream_taken: [4004, "This stream is already live"],
  request_refused: [4005, "The service did not accept the request"],
  too_many_requests: [4006, "Too many requests: wait a moment"],
  service_busy: [4007, "The service cannot accept this broadcast right now: try again in a moment"],
  customer_silent: [4008, "The server that authorises broadcasts did not answer: try again in a moment"],
  service_failed: [4009, "The service failed"],
  ended: [4010, "The broadcast was ended"],

  unreachable: [5001, "The service cannot be reached: check the network and the address"],
  no_media_path: [5002, "Audio and video cannot reach the service: a firewall may block its media port"],
  connection_lost: [5003, "The connection to the service was lost"],
  ended_by_service: [5004, "The service ended the broadcast"],
  reconnect_failed: [5005, "The connection was lost and could not be restored"],
} as const satisfies Readonly<Record<string, readonly [code: number, sentence: string]>>;

/** Stable name of an error. */
export type ErrorName = keyof typeof ERRORS;

/** Errors that may not recur when the same is tried again later. */
const TRANSIENT: readonly ErrorName[] = [
  "token_missing",
  "stream_taken",
  "too_many_requests",
  "service_busy",
  "customer_silent",
  "service_failed",
  "unreachable",
  "no_media_path",
  "connection_lost",
  "ended_by_service",
];

/** Details in addition to the table's sentence. */
export interface ErrorContext {
  /** The reason in words: `detail` of the service's problem document (for instance a customer's own reason), or the
   *  browser's. */
  readonly detail?: string | null;
  /** HTTP status of the refusal. */
  readonly status?: number | null;
  /** `code` of the problem document (RFC 9457), such as `rejected_by_customer`. */
  readonly problem?: string | null;
  /** How long the service asked to wait, seconds. */
  readonly retryAfterSec?: number | null;
  /** `ended_by` of the problem document: who or what ended the broadcast, such as `person` or `customer`. */
  readonly endedBy?: string | null;
  /** In place of the table's sentence. */
  readonly sentence?: string | null;
  readonly cause?: unknown;
}

/** The only error class of this package: promises reject with it and `onError` receives it. */
export class WebcasterError extends Error {
  override readonly name = "WebcasterError";
  /** Stable name of the error; see `ERRORS`. */
  readonly reason: ErrorName;
  /** The same as a number. */
  readonly code: number;
  readonly detail: string | null;
  readonly status: number | null;
  readonly problem: string | null;
  readonly retryAfterSec: number | null;
  readonly endedBy: string | null;

  constructor(reason: ErrorName, context: ErrorContext = {}) {
    const { detail, status, problem, retryAfterSec, endedBy, cause } = context;
    const [code, standard] = ERRORS[reason];
    const sentence = context.sentence ?? standard;
    super(detail ? `${sentence}: ${detail}` : sentence, { cause });
    this.reason = reason;
    this.code = code;
    this.detail = detail ?? null;
    this.status = status ?? null;
    this.problem = problem ?? null;
    this.retryAfterSec = retryAfterSec ?? null;
    this.endedBy = endedBy ?? null;
  }

  /** Whether a retry may succeed without anybody changing something. */
  get isTransient(): boolean {
    return TRANSIENT.includes(this.reason);
  }

  override toString(): string {
    return `${this.name} ${this.code}: ${this.message}`;
  }
}

/** Converts anything thrown to an error of this package. */
export function asWebcasterError(error: unknown, reason: ErrorName): WebcasterError {
  if (error instanceof WebcasterError) return error;
  return new WebcasterError(reason, { detail: error instanceof Error ? error.message : String(error), cause: error });
}
