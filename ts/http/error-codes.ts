// Every error number of the API with its text: one table, from which the OpenAPI description, the typed client and
// docs/management.md are generated. Numbers below 9000 come from the contract (M2, T2, T3), ours start at 9000.

/** The two shapes of error bodies: the management API's (M2) and the token service's (T2, T3). */
export type ErrorFamily = "management" | "token";

/** `null`: no route of that family returns it. */
interface ErrorCode {
  readonly management: number | null;
  readonly token: number | null;
  /** The text of the number, for people. */
  readonly says: string;
}

/** The same number in both families. */
const both = (number: number, says: string) => ({ management: number, token: number, says });

/** By name. Within a family a number has one meaning. Across families the contract itself gives 1002 and 1003 two
 *  meanings, on which deployed clients of both services rely: a client tells them apart by the shape of the body. */
export const ERROR_CODES = {
  parameter_required: { management: 1002, token: 1000, says: "Parameter required" },
  access_denied: { management: 2001, token: 1001, says: "Access denied" },
  bad_token: { management: null, token: 1002, says: "The web token is not valid" },
  not_unique: { management: 1003, token: null, says: "Not unique" },
  wrong_data_type: { management: 1004, token: 1003, says: "Wrong Data Type" },
  unknown_stream: both(3001, "Unknown stream"),
  wrong_credentials: { management: 4002, token: null, says: "Wrong credentials" },
  malformed_json: both(9000, "Malformed JSON"),
  bad_webhook_url: { management: 9001, token: null, says: "Invalid webhook URL" },
  invalid_value: both(9002, "Invalid value"),
  webhook_missing: { management: 9003, token: null, says: "No webhook is set" },
  unknown_delivery: { management: 9004, token: null, says: "Unknown delivery" },
  unknown_user: { management: 9005, token: null, says: "Unknown user" },
  unknown_api_key: { management: 9006, token: null, says: "Unknown API key" },
  unknown_session: { management: 9007, token: null, says: "Unknown session" },
  no_standby: { management: 9008, token: null, says: "The stream has no standby publish" },
  capture_refused: { management: 9009, token: null, says: "The capture cannot be started" },
  wrong_upstream_state: { management: 9011, token: null, says: "Not possible in the state of the upstream" },
  unknown_token: { management: 9010, token: null, says: "Unknown token" },
  unknown_address: both(9404, "Unknown address"),
  method_not_allowed: both(9405, "Method not allowed"),
  idempotency_key_reused: both(9409, "The Idempotency-Key was already used for a different request"),
  answer_pending: both(9410, "The first request with this Idempotency-Key is still running"),
  body_too_large: both(9413, "Body too large"),
  unknown_upstream: { management: 9420, token: null, says: "Unknown upstream" },
  too_many_requests: both(9429, "Too many requests"),
  too_many_readers: { management: 9440, token: null, says: "Too many event streams are open" },
  too_many_reads: { management: 9441, token: null, says: "The share of the store is used up" },
  internal_error: both(9500, "Internal error"),
  temporarily_unavailable: both(9503, "Temporarily unavailable"),
  too_many_previews: { management: 9504, token: null, says: "Too many previews are open" },
} as const satisfies Readonly<Record<string, ErrorCode>>;

/** The name of an error, with the same meaning in both families. */
export type ErrorName = keyof typeof ERROR_CODES;

/** The number of an error in a family; that of an internal error where the family has none. */
export function numberOf(name: ErrorName, family: ErrorFamily): number {
  return ERROR_CODES[name][family] ?? ERROR_CODES.internal_error[family];
}

/** Every number of a family with its name, ascending. */
export function codesOf(family: ErrorFamily): readonly { readonly number: number; readonly name: ErrorName }[] {
  const codes = Object.entries(ERROR_CODES) as [ErrorName, ErrorCode][];
  const given = codes.flatMap(([name, code]) => (code[family] === null ? [] : [{ number: code[family], name }]));
  return given.sort((a, b) => a.number - b.number);
}

/** The numbers of a family with their texts, for the document. */
export function codesInWords(family: ErrorFamily): string {
  return codesOf(family)
    .map(({ number, name }) => `${number} ${ERROR_CODES[name].says} (${name})`)
    .join("; ");
}

/** The table for docs/management.md, one row for each number. */
export function codesAsMarkdown(): string {
  const numbers = [...new Set([...codesOf("management"), ...codesOf("token")].map(({ number }) => number))];
  const cell = (number: number, family: ErrorFamily) => {
    const code = codesOf(family).find((each) => each.number === number);
    return code === undefined ? "" : `${ERROR_CODES[code.name].says} (\`${code.name}\`)`;
  };
  const rows = numbers
    .sort((a, b) => a - b)
    .map((number) => `| ${number} | ${cell(number, "management")} | ${cell(number, "token")} |`);
  return ["| Code | Management API | Token service |", "|---|---|---|", ...rows].join("\n");
}
