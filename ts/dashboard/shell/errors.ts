// Texts for failed calls: what happened, and what people can do. Never only a code.
import { HeadgateError } from "../../client/index.ts";
import { ROLE_WORDS, type Role } from "./permissions.ts";

/** One or two sentences. */
export function wordsOfError(error: unknown): string {
  if (!(error instanceof HeadgateError)) {
    return "Headgate does not answer. It may be restarting, or this device may be offline.";
  }
  const { kind, status, userinfo, field } = error;
  const reason = userinfo["reason"];
  switch (kind) {
    case "bad_webhook_url":
      return `This address cannot be the webhook: ${reason}.`;
    case "invalid_value":
      return reason === undefined ? plainMessage(error) : `${nameOf(field)} ${reason}.`;
    case "parameter_required":
      return `${nameOf(field)} is missing.`;
    case "wrong_data_type":
      return `${nameOf(field)} has the wrong type. Expected: ${userinfo["type"] ?? "another type of value"}.`;
    case "not_unique":
      return `${nameOf(field)} is already taken.`;
    case "wrong_credentials":
      return "The password is wrong.";
    case "access_denied":
      return deniedWords(error);
    case "webhook_missing":
      return "No webhook is set, so there is nothing to call.";
    case "unknown_stream":
      return "This stream does not exist, or was deleted.";
    case "unknown_session":
      return "This broadcast has ended.";
    case "unknown_delivery":
      return "This delivery does not exist or is no longer in the log.";
    case "unknown_user":
      return "This person has been removed in the meantime.";
    case "unknown_api_key":
      return "This key has been revoked in the meantime, or has expired.";
    case "unknown_upstream":
      return "This upstream has been removed in the meantime.";
    case "too_many_requests":
      return "Too many requests at once. Wait a moment and try again.";
    case "temporarily_unavailable":
      return "Headgate cannot do this right now. Try again in a moment.";
    default:
      if (status >= 500) return `Something failed inside Headgate. ${tellTheOperator(error)}`;
      return plainMessage(error);
  }
}

/** The data that a support request needs; "" when there is none. */
export function tellTheOperator(error: unknown): string {
  const id = error instanceof HeadgateError ? error.requestId : null;
  return id === null ? "" : `Give the operator this request id: ${id}`;
}

function deniedWords({ userinfo }: HeadgateError): string {
  const role = userinfo["required_role"];
  if (role !== undefined) return `Only ${roleName(String(role))}s may do this.`;
  if (userinfo["reason"] !== undefined) return `That is not allowed: ${userinfo["reason"]}.`;
  if (userinfo["required_state"] === "enabled")
    return "This organisation is not enabled: its trial may be over. Ask the operator.";
  return "That is not allowed.";
}

const roleName = (role: string) => (ROLE_WORDS[role as Role]?.name ?? role).toLowerCase();

/** The error's message without the status and code at its end. */
function plainMessage({ message }: HeadgateError): string {
  return `${message.replace(/ \(HTTP \d+, code \d+\)$/, "")}.`;
}

/** `max_bitrate_kbps` for display: "Max bitrate kbps". */
function nameOf(field: string | null): string {
  const words = (field ?? "a value").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
