// Whom a webhook's URL is shown to: its query may hold a secret of the customer's. Logs and metrics never have it.
import type { Caller } from "./callers.ts";

/** The URL without what its query says. */
export function withoutQuery(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? url : `${url.slice(0, at)}?…`;
}

/** The URL as this caller may see it: whole for administrators of the whole organisation. */
export function webhookShownTo({ role, scopeTag }: Pick<Caller, "role" | "scopeTag">, url: string): string {
  return role === "administrator" && scopeTag === null ? url : withoutQuery(url);
}
