// The caller of a request, by API key or as a signed-in person, and the check of what it may do.
import type { Kysely } from "kysely";
import { BadApiKey, OrganisationNotEnabled, OtherSitePage, ScopeRequired } from "../errors.ts";
import { isEnabled } from "../store/enabled.ts";
import type { OrganisationTable, Schema } from "../store/schema.ts";
import type { Role } from "../store/tables/roles.ts";
import type { ApiKeys } from "./api-keys.ts";
import { type Logins, pageTokenHolds } from "./logins.ts";
import { isOperator } from "./organisations.ts";
import { type Action, isForOperators, requireRole, requireWholeOrganisation } from "./roles.ts";

/** Who makes a request. */
export interface Caller {
  readonly organisation: Readonly<OrganisationTable>;
  readonly role: Role;
  readonly who: { readonly kind: "key" | "user"; readonly id: string };
  /** The caller sees and creates only streams with this tag; null: the whole organisation. */
  readonly scopeTag: string | null;
  /** For a person; null for a key. */
  readonly email: string | null;
}

/** The credentials in a request. */
export interface Credentials {
  /** The API key as sent, or null. It takes precedence over a session. */
  readonly apiKey: string | null;
  /** Id of a person's session, or null. */
  readonly sessionId: string | null;
  /** The page token as sent, or null. */
  readonly pageToken: string | null;
  /** Whether the request changes something, for which a session alone is not enough. */
  readonly changes: boolean;
  /** Whether the browser reports that another site's page made it. */
  readonly otherSitePage: boolean;
}

/** The caller with these credentials if it may perform `action`. `identified` is called with the caller before
 *  permissions are checked. Rejects with `BadApiKey` (also without credentials and for a session that has ended),
 *  `OtherSitePage`, `OrganisationNotEnabled`, `RoleRequired` or `ScopeRequired`. */
export type Authorise = (
  credentials: Credentials,
  action: Action,
  identified?: (caller: Caller) => void,
) => Promise<Caller>;

export function createAuthorise(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly apiKeys: ApiKeys;
  readonly logins: Logins;
}): Authorise {
  const { db, clock, apiKeys, logins } = deps;

  return async ({ apiKey, sessionId, ...page }, action, identified) => {
    const caller = apiKey !== null || sessionId === null ? await keyCaller(apiKey) : await person(sessionId);
    identified?.(caller);
    if (caller.who.kind === "user" && page.changes) {
      if (page.otherSitePage || !pageTokenHolds(sessionId ?? "", page.pageToken)) throw new OtherSitePage();
    }
    if (!isEnabled(caller.organisation, clock.now())) throw new OrganisationNotEnabled();
    requireRole(caller.role, action);
    if (caller.scopeTag !== null) requireWholeOrganisation(action);
    if (isForOperators(action) && !isOperator(caller)) throw new ScopeRequired("deployment");
    if (caller.who.kind === "key") apiKeys.used(caller.who.id);
    return caller;
  };

  async function keyCaller(text: string | null): Promise<Caller> {
    const { organisation, role, id, scope_tag: scopeTag } = await apiKeys.find(text);
    return { organisation, role, who: { kind: "key", id }, scopeTag, email: null };
  }

  async function person(sessionId: string): Promise<Caller> {
    const found = await logins.find(sessionId);
    if (found === null) throw new BadApiKey();
    const { id, email, role } = found;
    const organisation = await db
      .selectFrom("organisation")
      .selectAll()
      .where("id", "=", found.organisation_id)
      .executeTakeFirstOrThrow();
    return { organisation, role, who: { kind: "user", id }, scopeTag: null, email };
  }
}
