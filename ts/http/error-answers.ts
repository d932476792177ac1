// The one table from an error to its HTTP status and JSON body, in both shapes: the management API's (M2) and the token
// service's (T2, T3). Messages name the invalid parameter (M19).
import { API_KEY_HEADER, keyWanted } from "../api-key-headers.ts";
import { type HttpError, ServiceError } from "../errors.ts";
import { ERROR_CODES, type ErrorFamily, type ErrorName, numberOf } from "./error-codes.ts";

/** `means`: the entry of error-codes.ts when its name differs from the error's. `message`: replaces the text of the
 *  number; `tokenMessage`: the same in the token family. */
interface Row<E extends HttpError> {
  readonly status: 400 | 403 | 404 | 405 | 409 | 413 | 429 | 500 | 503;
  readonly means: ErrorName | ((error: E) => ErrorName);
  readonly message?: string | ((error: E, keyHeaders: readonly string[]) => string);
  readonly userinfo?: (error: E) => Record<string, string | number>;
  readonly tokenMessage?: string | ((error: E) => string);
}

type Table = { readonly [E in HttpError as E["code"]]: Row<E> };

const UNKNOWN = {
  user: "unknown_user",
  "API key": "unknown_api_key",
  session: "unknown_session",
  token: "unknown_token",
} as const;

const TABLE: Table = {
  parameter_required: {
    status: 400,
    means: "parameter_required",
    message: ({ message }) => message,
    userinfo: ({ parameter }) => ({ required_parameter: parameter }),
  },
  wrong_data_type: {
    status: 400,
    means: "wrong_data_type",
    message: ({ parameter }) => `Wrong Data Type: ${parameter}`,
    userinfo: ({ parameter, type }) => ({ parameter, type }),
    tokenMessage: ({ message }) => message,
  },
  invalid_value: {
    status: 400,
    means: "invalid_value",
    message: ({ message }) => message,
    userinfo: ({ parameter, reason }) => ({ parameter, reason }),
  },
  bad_webhook_url: { status: 400, means: "bad_webhook_url", userinfo: ({ reason }) => ({ reason }) },
  webhook_missing: { status: 404, means: "webhook_missing" },
  unknown_delivery: { status: 404, means: "unknown_delivery" },
  malformed_json: { status: 400, means: "malformed_json" },
  body_too_large: { status: 413, means: "body_too_large" },
  bad_api_key: {
    status: 403,
    means: "access_denied",
    message: (_, keyHeaders) => `Access denied: ${keyWanted(keyHeaders)}`,
    userinfo: () => ({ required_header: API_KEY_HEADER }),
    tokenMessage: "Provided APIKey is not valid", // T2
  },
  role_required: {
    status: 403,
    means: "access_denied",
    userinfo: ({ role }) => ({ required_role: role }),
    tokenMessage: "Provided APIKey may not create web tokens",
  },
  scope_required: { status: 403, means: "access_denied", userinfo: ({ scope }) => ({ required_scope: scope }) },
  operators_upstream: {
    status: 403,
    means: "access_denied",
    userinfo: () => ({ reason: "the operator's upstreams cannot be removed" }),
  },
  other_site_page: { status: 403, means: "access_denied", userinfo: () => ({ required_header: "x-csrf-token" }) },
  wrong_credentials: { status: 403, means: "wrong_credentials" },
  not_unique: {
    status: 400,
    means: "not_unique",
    message: ({ message }) => message,
    userinfo: ({ parameter, stream }) => ({ parameter, ...(stream !== null && { stream }) }),
  },
  unknown_record: { status: 404, means: ({ kind }) => UNKNOWN[kind] },
  // M14
  organisation_not_enabled: {
    status: 403,
    means: "access_denied",
    message: "Organisation is not enabled",
    userinfo: () => ({ required_state: "enabled" }),
  },
  unknown_stream: { status: 404, means: "unknown_stream" },
  unknown_upstream: { status: 404, means: "unknown_upstream" },
  bad_token: { status: 403, means: "bad_token", message: ({ fault }) => fault },
  unknown_address: { status: 404, means: "unknown_address" },
  method_not_allowed: { status: 405, means: "method_not_allowed" },
  too_many_requests: { status: 429, means: "too_many_requests" },
  too_many_readers: { status: 503, means: "too_many_readers" },
  too_many_reads: { status: 503, means: "too_many_reads" },
  idempotency_key_reused: { status: 409, means: "idempotency_key_reused" },
  answer_pending: { status: 409, means: "answer_pending" },
  too_many_previews: { status: 503, means: "too_many_previews" },
  store_failed: { status: 503, means: "temporarily_unavailable" },
  capture_refused: { status: 409, means: "capture_refused", message: ({ message }) => message },
  wrong_upstream_state: { status: 409, means: "wrong_upstream_state", message: ({ message }) => message },
  no_standby: { status: 409, means: "no_standby" },
  node_away: { status: 503, means: "temporarily_unavailable" },
  internal_error: { status: 500, means: "internal_error" },
};

/** Status and JSON body of an error, in the shape of the family that the path belongs to. `keyHeaders`: header names for
 *  API keys in addition to x-service-apikey. */
export function answerOf(
  error: HttpError,
  family: ErrorFamily,
  keyHeaders: readonly string[] = [],
): { readonly status: Row<never>["status"]; readonly body: object } {
  // The row of an error's own code accepts that error.
  const row = TABLE[error.code] as Row<HttpError>;
  const name = typeof row.means === "string" ? row.means : row.means(error);
  const number = numberOf(name, family);
  const said = (family === "token" ? row.tokenMessage : undefined) ?? row.message ?? ERROR_CODES[name].says;
  const message = typeof said === "string" ? said : said(error, keyHeaders);
  switch (family) {
    case "management":
      return {
        status: row.status,
        body: { error: { code: number, message, userinfo: row.userinfo?.(error) ?? {} } },
      };
    case "token":
      return { status: row.status, body: { success: false, errorCode: number, message } };
  }
}

/** Whether the table has a row for the error. */
export function isHttpError(error: unknown): error is HttpError {
  return error instanceof ServiceError && error.code in TABLE;
}
