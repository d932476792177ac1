// The errors of this service, by stable code. What an HTTP caller receives is in http/error-answers.ts, and for WHIP in
// http/whip/whip-problems.ts.
import type { Role } from "./store/tables/roles.ts";

/** Base of every error this service raises on purpose. `code` is stable and part of the contract. */
export abstract class ServiceError extends Error {
  abstract readonly code: string;
}

/** A required member of the body is missing (M5, T2). */
export class ParameterRequired extends ServiceError {
  readonly code = "parameter_required";
  readonly parameter: string;
  constructor(parameter: string) {
    super(`Parameter required: ${parameter}`);
    this.parameter = parameter;
  }
}

/** A member or query parameter is not of type `type` (M5, T2). */
export class WrongDataType extends ServiceError {
  readonly code = "wrong_data_type";
  readonly parameter: string;
  /** The type that was expected. */
  readonly type: string;
  constructor(parameter: string, type: string) {
    super(`Wrong data type: ${parameter}`);
    this.parameter = parameter;
    this.type = type;
  }
}

/** A value of the right type but outside the accepted range; `reason` completes "<parameter> …". */
export class InvalidValue extends ServiceError {
  readonly code = "invalid_value";
  readonly parameter: string;
  readonly reason: string;
  constructor(parameter: string, reason: string) {
    super(`Invalid value: ${parameter} ${reason}`);
    this.parameter = parameter;
    this.reason = reason;
  }
}

/** The webhook URL may not be saved (W21). */
export class BadWebhookUrl extends ServiceError {
  readonly code = "bad_webhook_url";
  readonly reason: string;
  constructor(reason: string) {
    super(`Invalid webhook URL: ${reason}`);
    this.reason = reason;
  }
}

/** No webhook is configured. */
export class WebhookMissing extends ServiceError {
  readonly code = "webhook_missing";
}

/** No delivery of the organisation has this id, or it has been deleted. */
export class UnknownDelivery extends ServiceError {
  readonly code = "unknown_delivery";
}

export class MalformedJson extends ServiceError {
  readonly code = "malformed_json";
}

export class BodyTooLarge extends ServiceError {
  readonly code = "body_too_large";
}

/** The API key is missing, unknown or expired: the same for all three (M3). */
export class BadApiKey extends ServiceError {
  readonly code = "bad_api_key";
}

/** The API key is valid, but its role does not permit this (M4). */
export class RoleRequired extends ServiceError {
  readonly code = "role_required";
  readonly role: Role;
  constructor(role: Role) {
    super(`Role required: ${role}`);
    this.role = role;
  }
}

/** The API key is valid, but it is limited to the streams of one tag, and this concerns the whole organisation; or it
 *  is an organisation's, and this concerns the deployment. */
export class ScopeRequired extends ServiceError {
  readonly code = "scope_required";
  readonly scope: "organisation" | "deployment";
  constructor(scope: ScopeRequired["scope"] = "organisation") {
    super(`Scope required: ${scope}`);
    this.scope = scope;
  }
}

/** The upstream exists, but belongs to the operator, who configured it for every publish. */
export class OperatorsUpstream extends ServiceError {
  readonly code = "operators_upstream";
}

/** A session alone is not enough: the page token is missing or wrong, or another site's page made the request. */
export class OtherSitePage extends ServiceError {
  readonly code = "other_site_page";
}

/** Wrong e-mail or password; the same when the e-mail is unknown. */
export class WrongCredentials extends ServiceError {
  readonly code = "wrong_credentials";
}

/** The value is already in use. */
export class NotUnique extends ServiceError {
  readonly code = "not_unique";
  readonly parameter: string;
  /** Id of the stream that has the value already; null where it is something else, or hidden from the caller. */
  readonly stream: string | null;
  constructor(parameter: string, reason = "", stream: string | null = null) {
    super(`Not unique: ${parameter}${reason && ` ${reason}`}`);
    this.parameter = parameter;
    this.stream = stream;
  }
}

/** No such thing in the caller's organisation. */
export class UnknownRecord extends ServiceError {
  readonly code = "unknown_record";
  readonly kind: "user" | "API key" | "session" | "token";
  constructor(kind: UnknownRecord["kind"]) {
    super(`Unknown ${kind}`);
    this.kind = kind;
  }
}

/** Too many requests (M13), or too many wrong passwords. */
export class TooManyRequests extends ServiceError {
  readonly code = "too_many_requests";
  /** When to try again, seconds from now. */
  readonly retryAfterS: number;
  constructor(retryAfterS: number) {
    super("Too many requests");
    this.retryAfterS = retryAfterS;
  }
}

/** The limit of concurrent previews is reached. */
export class TooManyPreviews extends ServiceError {
  readonly code = "too_many_previews";
}

/** The limit of open event streams of an organisation, or of the service, is reached; or the service is stopping. */
export class TooManyReaders extends ServiceError {
  readonly code = "too_many_readers";
}

/** The organisation's reads take all of its share of the store. */
export class TooManyReads extends ServiceError {
  readonly code = "too_many_reads";
  /** When to try again, seconds from now. */
  readonly retryAfterS: number;
  constructor(retryAfterS: number) {
    super("the organisation's share of the store is used up");
    this.retryAfterS = retryAfterS;
  }
}

/** Captures are disabled, the limit of concurrent captures is reached, or the file cannot be created; the message says
 *  which. */
export class CaptureRefused extends ServiceError {
  readonly code = "capture_refused";
}

/** The stream has no publish on standby for the one on air. */
export class NoStandby extends ServiceError {
  readonly code = "no_standby";
}

/** Not for an upstream in its present state. The message says which state, and what can be done. */
export class WrongUpstreamState extends ServiceError {
  readonly code = "wrong_upstream_state";
}

/** Worth retrying: soon the node answers again, or another has ended its publishes. */
export class NodeAway extends ServiceError {
  readonly code = "node_away";
}

/** The Idempotency-Key was used for a different request (M17). */
export class IdempotencyKeyReused extends ServiceError {
  readonly code = "idempotency_key_reused";
}

/** The request with this Idempotency-Key is still running. */
export class AnswerPending extends ServiceError {
  readonly code = "answer_pending";
  /** When to try again, seconds from now. */
  readonly retryAfterS: number;
  constructor(retryAfterS: number) {
    super("The first request is still running");
    this.retryAfterS = retryAfterS;
  }
}

/** The organisation is disabled or its trial is over (M14). */
export class OrganisationNotEnabled extends ServiceError {
  readonly code = "organisation_not_enabled";
}

/** No such stream in the caller's organisation (M10). */
export class UnknownStream extends ServiceError {
  readonly code = "unknown_stream";
}

/** The stream has no such upstream. */
export class UnknownUpstream extends ServiceError {
  readonly code = "unknown_upstream";
}

/** Why a web token is invalid, in the words of T3; "jwt revoked" is ours (T7). */
export type TokenFault = "jwt expired" | "jwt not active" | "invalid signature" | "jwt malformed" | "jwt revoked";

export class BadToken extends ServiceError {
  readonly code = "bad_token";
  readonly fault: TokenFault;
  constructor(fault: TokenFault, options?: ErrorOptions) {
    super(fault, options);
    this.fault = fault;
  }
}

export class UnknownAddress extends ServiceError {
  readonly code = "unknown_address";
}

export class MethodNotAllowed extends ServiceError {
  readonly code = "method_not_allowed";
  /** Methods that the path supports. */
  readonly allow: readonly string[];
  constructor(allow: readonly string[]) {
    super(`Allowed: ${allow.join(", ")}`);
    this.allow = allow;
  }
}

/** The store cannot be opened; the message gives the reason and a remedy. */
export class StoreUnavailable extends ServiceError {
  readonly code = "store_unavailable";
}

/** The open store refused or failed a statement. */
export class StoreFailed extends ServiceError {
  readonly code = "store_failed";
}

/** The configuration cannot be used; one line for each fault. */
export class ConfigInvalid extends ServiceError {
  readonly code = "config_invalid";
}

/** A requested port is in use, or may not be bound. */
export class PortTaken extends ServiceError {
  readonly code = "port_taken";
}

/** The library of the media core is missing, or built for another platform. */
export class MediaCoreMissing extends ServiceError {
  readonly code = "media_core_missing";
}

/** A thread, a socket or a poll; the message contains the system's error, and where its limits are set. */
export class SystemRefused extends ServiceError {
  readonly code = "system_refused";
}

/** The handover to a new process failed; the running service continues as before. */
export class UpgradeFailed extends ServiceError {
  readonly code = "upgrade_failed";
}

/** Errors that an HTTP caller can receive. */
export type HttpError =
  | ParameterRequired
  | WrongDataType
  | InvalidValue
  | BadWebhookUrl
  | WebhookMissing
  | UnknownDelivery
  | MalformedJson
  | BodyTooLarge
  | BadApiKey
  | RoleRequired
  | ScopeRequired
  | OperatorsUpstream
  | NoStandby
  | OtherSitePage
  | WrongCredentials
  | NotUnique
  | UnknownRecord
  | OrganisationNotEnabled
  | UnknownStream
  | UnknownUpstream
  | BadToken
  | UnknownAddress
  | MethodNotAllowed
  | TooManyRequests
  | TooManyPreviews
  | TooManyReaders
  | TooManyReads
  | CaptureRefused
  | WrongUpstreamState
  | NodeAway
  | IdempotencyKeyReused
  | AnswerPending
  | StoreFailed
  | InternalError;

/** Any unexpected error; the cause is logged, never shown. */
export class InternalError extends ServiceError {
  readonly code = "internal_error";
}
