// The errors of the WHIP endpoint as problem documents (RFC 9457, P10): one table from code to status and title.
import { type HttpError, MethodNotAllowed, ServiceError } from "../../errors.ts";
import type { DenialCause, Denied } from "../../publish/denials.ts";
import { END_CODES, type Ending, endForClients } from "../../publish/ending/ending.ts";

/** The path of the WHIP endpoint. */
export const WHIP_PATH = "/p/webrtc";

type Status = 400 | 401 | 403 | 404 | 405 | 409 | 410 | 412 | 413 | 415 | 422 | 428 | 429 | 500 | 503 | 504;

/** Codes that only WHIP has; offers add those of the media core. */
export type WhipFault =
  | "parameter_required"
  | "bad_parameter"
  | "bad_stream_url"
  | "unsupported_media_type"
  | "unknown_session"
  | "bad_token"
  | "token_mismatch"
  | "precondition_required"
  | "precondition_failed"
  | "bad_fragment"
  | "bad_metadata"
  | "too_many_requests"
  | "overloaded";

const FAULTS: Readonly<Record<WhipFault, readonly [Status, title: string]>> = {
  parameter_required: [400, "Parameter required"],
  bad_parameter: [400, "Invalid parameter"],
  bad_stream_url: [400, "Invalid stream_url"],
  unsupported_media_type: [415, "Unsupported media type"],
  unknown_session: [404, "Unknown session"],
  bad_token: [401, "Invalid token"],
  token_mismatch: [403, "Token of another stream"],
  precondition_required: [428, "Precondition required"],
  precondition_failed: [412, "Precondition failed"],
  bad_fragment: [400, "Fragment refused"],
  bad_metadata: [400, "Invalid metadata"],
  too_many_requests: [429, "Too many requests"],
  overloaded: [503, "Temporarily overloaded"],
};

const DENIED: Readonly<Record<DenialCause, readonly [Status, title: string]>> = {
  malformed_name: [400, "Invalid stream name"],
  reserved_field: [400, "Reserved field in custom arguments"],
  unknown_stream: [404, "Unknown stream"],
  too_many_names: [429, "Too many unknown stream names"],
  locked_stream: [403, "Stream is locked"],
  refused_after_end: [403, "Refused after an end"],
  already_live: [409, "Stream is already live"],
  organisation_disabled: [403, "Organisation is not enabled"],
  token_required: [401, "Token required"],
  key_missing: [403, "Publish key required"],
  key_wrong: [403, "Wrong publish key"],
  rejected_by_customer: [403, "Publish denied"],
  customer_unreachable: [504, "Publish could not be authorised"],
  stopped: [403, "Publish was ended by the operator"],
  stopping: [503, "Service is stopping"],
  full: [503, "This server is full"],
  too_many_streams: [403, "Too many live streams"],
  too_much_bitrate: [403, "Too much ingest bitrate"],
  too_many_setups: [429, "Too many publishes are starting at once"],
  store_unavailable: [503, "Temporarily unavailable"],
  internal_error: [500, "Internal error"],
};

/** Errors that any path can return. */
const GENERAL = {
  body_too_large: [413, "Offer too large"],
  method_not_allowed: [405, "Method not allowed"],
  unknown_address: [404, "Unknown address"],
  store_failed: [503, "Temporarily unavailable"],
  node_away: [503, "Temporarily unavailable"],
  internal_error: [500, "Internal error"],
} as const satisfies Readonly<Record<string, readonly [Status, title: string]>>;

/** The page that explains each code; a problem's type is the code's anchor on it. */
export const PROBLEM_PAGE = "/docs/problems";

/** Every code with its status and title, except those of the media core for refused offers. */
export const PROBLEMS: Readonly<Record<string, readonly [status: number, title: string]>> = {
  ...FAULTS,
  ...DENIED,
  ...GENERAL,
  ...Object.fromEntries(Object.entries(END_CODES).map(([code, { title }]) => [code, [410, title]])),
};

const EXPOSE_HEADERS =
  "Location, ETag, Link, Accept-Post, Accept-Patch, Retry-After, Access-Control-Allow-Methods, x-request-id";
/** Retry-After for errors where waiting helps, seconds. */
export const RETRY_AFTER_S = 5;

/** The parts of a denial that its client receives. */
type Refusal = Pick<Denied, "cause" | "description"> & { readonly retryAfterS?: number | null };

/** A refusal of the WHIP endpoint. `detail` is for people: never the SDP, never anything of the customer's webhook but
 *  the reason of W26. */
export class WhipProblem extends ServiceError {
  readonly code: string;
  readonly status: Status;
  readonly title: string;
  readonly detail: string;
  /** Retry-After, seconds; null when retrying makes no sense. */
  readonly retryAfterS: number | null;
  /** Further members of the document. */
  readonly more: Readonly<Record<string, string | boolean>>;

  constructor(
    code: string,
    status: Status,
    title: string,
    detail: string,
    retryAfterS: number | null = null,
    more: WhipProblem["more"] = {},
  ) {
    super(title);
    this.code = code;
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.more = more;
    this.retryAfterS = retryAfterS ?? (status === 503 ? RETRY_AFTER_S : null);
  }

  static fault(code: WhipFault, detail: string, retryAfterS: number | null = null): WhipProblem {
    const [status, title] = FAULTS[code];
    return new WhipProblem(code, status, title, detail, retryAfterS);
  }

  /** The session has ended: by whom, in which words, and whether a client must not start again by itself. */
  static ended(ending: Ending): WhipProblem {
    const { code, title, reason, ...more } = endForClients(ending);
    return new WhipProblem(code, 410, title, reason, null, more);
  }

  /** The limit of one address, or of all, is exceeded. */
  static limited({ of, retryAfterS }: { readonly of: "address" | "all"; readonly retryAfterS: number }): WhipProblem {
    const code = of === "address" ? "too_many_requests" : "overloaded";
    return WhipProblem.fault(code, `Try again in ${retryAfterS} s`, retryAfterS);
  }

  static denied({ cause, description, retryAfterS = null }: Refusal): WhipProblem {
    const [status, title] = DENIED[cause];
    return new WhipProblem(cause, status, title, description, retryAfterS);
  }
}

/** Headers of every response of the WHIP endpoint: any page may read it, and nobody may cache it. */
export function setWhipHeaders(headers: Headers): void {
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", EXPOSE_HEADERS);
  // The session's URL is a capability, and the endpoint's may contain a passcode.
  headers.set("cache-control", "no-store");
  headers.set("referrer-policy", "no-referrer");
}

/** The problem document of an error, with its headers. */
export function problemResponse(error: HttpError | WhipProblem): Response {
  const problem = error instanceof WhipProblem ? error : generalProblem(error);
  const { status, title, detail, code } = problem;
  const headers = new Headers({ "content-type": "application/problem+json" });
  // Set here as well: a body over the limit is refused before the WHIP routes are reached, and a page must be able to
  // read the response.
  setWhipHeaders(headers);
  if (problem.retryAfterS !== null) headers.set("retry-after", String(problem.retryAfterS));
  if (status === 401) headers.set("www-authenticate", 'Bearer error="invalid_token"');
  if (error instanceof MethodNotAllowed) headers.set("allow", error.allow.join(", "));
  // RFC 9457 3.1.1: a relative reference with its full path, since the endpoint may have several host names.
  const type = `${PROBLEM_PAGE}#${code}`;
  return new Response(JSON.stringify({ type, title, status, detail, code, ...problem.more }), { status, headers });
}

function generalProblem(error: HttpError): WhipProblem {
  const known = Object.hasOwn(GENERAL, error.code) ? (error.code as keyof typeof GENERAL) : "internal_error";
  const [status, title] = GENERAL[known];
  return new WhipProblem(known, status, title, DETAILS[known]);
}

const DETAILS: Readonly<Record<keyof typeof GENERAL, string>> = {
  body_too_large: "An offer must not be larger than 64 KiB",
  method_not_allowed: "See the Allow header",
  unknown_address: "There is nothing at this address",
  store_failed: "Try again in a moment",
  node_away: "The node that serves the session does not answer; try again in a moment",
  internal_error: "The request is logged under its x-request-id",
};
