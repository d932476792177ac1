// Who may do what (M4): one table from route to action, one from action to the least role. A route without a row does
// not compile, and a test looks for rows nobody serves.
import { RoleRequired } from "../errors.ts";
import type { Role } from "../store/schema.ts";

/** Least role first; a role may do what the ones before it may. */
const ROLES: readonly Role[] = ["readonly", "user", "administrator"];

/** The least role that may do it. */
const LEAST_ROLE = {
  view: "readonly",
  create_stream: "user",
  change_tags: "user",
  create_token: "user",
  revoke_token: "administrator", // it ends broadcasts
  control_stream: "administrator",
  change_webhook: "administrator",
  change_settings: "administrator",
  manage_users: "administrator",
  manage_keys: "administrator",
  view_audit: "administrator",
} as const satisfies Readonly<Record<string, Role>>;

export type Action = keyof typeof LEAST_ROLE;

/** What every route asks of its caller; `anyone`: no key, no session. */
export const ROUTES = {
  "GET /organisation": "view",
  "PUT /organisation/webhook": "change_webhook",
  "DELETE /organisation/webhook": "change_webhook",

  "POST /stream": "create_stream",
  "GET /stream": "view",
  "GET /stream/{id}": "view",

  "POST /webcaster": "create_token",
  "POST /webcaster/verify": "anyone",
  "POST /webcaster/revoke": "revoke_token",
  "GET /.well-known/jwks.json": "anyone",

  "GET /openapi.json": "anyone",
  "GET /docs": "anyone",
  "GET /docs/{file}": "anyone",
} as const satisfies Readonly<Record<string, Action | "anyone">>;

/** A method and a path as OpenAPI writes them. */
export type RouteName = keyof typeof ROUTES;

/** Throws `RoleRequired` with the least role that would do. */
export function requireRole(role: Role, action: Action): void {
  const least = LEAST_ROLE[action];
  if (ROLES.indexOf(role) < ROLES.indexOf(least)) throw new RoleRequired(least);
}
