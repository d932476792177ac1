// Who makes a request, and whether they may.
import type { ApiKeys, Caller } from "./api-keys.ts";
import type { Action } from "./roles.ts";

export type { Caller } from "./api-keys.ts";

/** What a request shows of its caller. */
export interface Credentials {
  /** The API key as sent, or null. */
  readonly apiKey: string | null;
}

/** The caller behind the credentials if they may do `action`. Rejects with `BadApiKey`, `OrganisationNotEnabled` or
 *  `RoleRequired`. */
export type Authorise = (credentials: Credentials, action: Action) => Promise<Caller>;

export function createAuthorise(apiKeys: ApiKeys): Authorise {
  return (credentials, action) => apiKeys.authorise(credentials.apiKey, action);
}
