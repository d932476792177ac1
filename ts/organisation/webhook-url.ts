// Who sees a webhook URL in full: its query may contain a secret of the customer's. Logs and metrics never do.
import type { Caller } from "./callers.ts";

/** The URL with its query removed. */
export function withoutQuery(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? url : `${url.slice(0, at)}?…`;
}

/** The URL as this caller may see it: in full for administrators of the whole organisation. */
export function webhookShownTo({ role, scopeTag }: Pick<Caller, "role" | "scopeTag">, url: string): string {
  return role === "administrator" && scopeTag === null ? url : withoutQuery(url);
}
