// The error of a refused call: its `kind` says what happened, whichever service refused.
import { MANAGEMENT_ERRORS, TOKEN_ERRORS } from "./error-codes.ts";

type Known =
  | (typeof MANAGEMENT_ERRORS)[keyof typeof MANAGEMENT_ERRORS]
  | (typeof TOKEN_ERRORS)[keyof typeof TOKEN_ERRORS];

/** The kind of an error. `other`: a code of a gateway newer than this client, or a response that is not from the API,
 *  for example a proxy's. */
export type ErrorKind = Known | "other";

/** A refused call. The message contains code, status and, if one is invalid, the field. */
export class HeadgateError extends Error {
  /** Stable, and the same in both services: "unknown_stream", "invalid_value", … */
  readonly kind: ErrorKind;
  readonly status: number;
  /** The number as sent. Stable; 1002 and 1003 have different meanings in the management API and the token service. */
  readonly code: number;
  /** The invalid parameter, or null; the token service names it only in the message. */
  readonly field: string | null;
  readonly userinfo: Readonly<Record<string, string | number>>;
  /** Quote it in a report to the operator, who can find the request in the log by it. */
  readonly requestId: string | null;

  constructor(response: Response, body: unknown) {
    const { kind, code, message, userinfo } = readError(body);
    const given = userinfo["required_parameter"] ?? userinfo["parameter"];
    const field = given === undefined ? null : String(given);
    // Gateways older than this client did not include it in the message.
    const named = field === null || message.includes(field) ? message : `${message}: ${field}`;
    const to = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
    const said = to === null ? named : `redirected to ${to}, which is not followed`;
    super(`${said} (HTTP ${response.status}, code ${code})`);
    this.name = "HeadgateError";
    this.kind = kind;
    this.status = response.status;
    this.code = code;
    this.field = field;
    this.userinfo = userinfo;
    this.requestId = response.headers.get("x-request-id");
  }
}

/** Whether the error is a refused call, and of one of these kinds when some are given: `if (isHeadgateError(error,
 *  "unknown_stream")) return null`. */
export function isHeadgateError<Kind extends ErrorKind = ErrorKind>(
  error: unknown,
  ...kinds: readonly Kind[]
): error is HeadgateError & { readonly kind: Kind } {
  return error instanceof HeadgateError && (kinds.length === 0 || kinds.some((kind) => kind === error.kind));
}

interface Refusal {
  readonly kind: ErrorKind;
  readonly code: number;
  readonly message: string;
  readonly userinfo: Readonly<Record<string, string | number>>;
}

/** Both shapes of errors: the management API's, and the token service's flat one. */
function readError(body: unknown): Refusal {
  if (typeof body === "object" && body !== null) {
    if ("error" in body && typeof body.error === "object" && body.error !== null) {
      const { code, message, userinfo } = body.error as Omit<Refusal, "kind">;
      return { kind: kindIn(MANAGEMENT_ERRORS, code), code, message, userinfo };
    }
    if ("errorCode" in body && "message" in body) {
      const code = Number(body.errorCode);
      return { kind: kindIn(TOKEN_ERRORS, code), code, message: String(body.message), userinfo: {} };
    }
  }
  return { kind: "other", code: 0, message: "the response is not an error of this API", userinfo: {} };
}

function kindIn(codes: Readonly<Record<number, Known>>, code: number): ErrorKind {
  return codes[code] ?? "other";
}
