// Permissions (M4): one table from route to action, one from action to the least role. A route without a row does not
// compile, and a test finds rows that no route uses.
import { RoleRequired, ScopeRequired } from "../errors.ts";
import { ROLES, type Role } from "../store/tables/roles.ts";

/** The least role for each action. */
const LEAST_ROLE = {
  view: "readonly",
  view_deliveries: "readonly",
  view_refusals: "readonly",
  create_stream: "user",
  change_tags: "user",
  change_titles: "user",
  change_upstreams: "user",
  create_token: "user",
  view_tokens: "user",
  revoke_token: "administrator", // it ends broadcasts
  control_stream: "administrator",
  change_webhook: "administrator",
  change_settings: "administrator",
  manage_users: "administrator",
  manage_keys: "administrator",
  view_audit: "administrator",
  view_deployment: "administrator",
  capture: "administrator", // what others broadcast
  change_own_password: "readonly",
} as const satisfies Readonly<Record<string, Role>>;

export type Action = keyof typeof LEAST_ROLE;

/** Actions allowed to a key that is limited to the streams of one tag, if its role permits. */
const SCOPED: ReadonlySet<Action> = new Set([
  "view",
  "create_stream",
  "change_tags",
  "change_titles",
  "change_upstreams",
  "create_token",
  "control_stream",
]);

/** Actions allowed only to administrators of the deployment's own organisation. */
const OPERATORS: ReadonlySet<Action> = new Set(["view_deployment", "capture"]);

/** The action of every route; `anyone`: no key, no session required. */
export const ROUTES = {
  "GET /organisation": "view",
  "PUT /organisation/webhook": "change_webhook",
  "DELETE /organisation/webhook": "change_webhook",
  "POST /organisation/webhook/secret": "change_webhook",
  "POST /organisation/webhook/test": "change_webhook",
  "GET /organisation/webhook/copies": "view",
  "PUT /organisation/webhook/copies": "change_webhook",
  "DELETE /organisation/webhook/copies": "change_webhook",
  "POST /organisation/webhook/copies/secret": "change_webhook",
  "POST /organisation/webhook/copies/test": "change_webhook",
  "GET /organisation/webhook/deliveries": "view_deliveries",
  "GET /organisation/webhook/deliveries/{id}": "view_deliveries",
  "POST /organisation/webhook/deliveries/{id}/replay": "change_webhook",
  "GET /organisation/status": "view_deliveries",
  "GET /organisation/settings": "view",
  "PUT /organisation/settings": "change_settings",
  "GET /organisation/logo": "view",
  "PUT /organisation/logo": "change_settings",
  "DELETE /organisation/logo": "change_settings",
  "GET /organisation/usage": "view",
  "GET /organisation/audit": "view_audit",

  "GET /organisation/events": "view",

  "GET /organisation/user": "manage_users",
  "POST /organisation/user": "manage_users",
  "PUT /organisation/user/{id}": "manage_users",
  "DELETE /organisation/user/{id}": "manage_users",
  "POST /organisation/user/{id}/password-link": "manage_users",

  "GET /organisation/identity-provider": "manage_users",
  "PUT /organisation/identity-provider": "manage_users",
  "DELETE /organisation/identity-provider": "manage_users",

  "GET /organisation/key": "manage_keys",
  "POST /organisation/key": "manage_keys",
  "POST /organisation/key/{id}/rotate": "manage_keys",
  "DELETE /organisation/key/{id}": "manage_keys",

  "POST /stream": "create_stream",
  "GET /stream": "view",
  "GET /stream/{id}": "view",
  "GET /stream/{id}/publish": "view",
  "GET /stream/{id}/refusal": "view",
  "PUT /stream/{id}/tag": "change_tags",
  "PUT /stream/{id}/title": "change_titles",
  "PUT /stream/{id}/external-id": "change_titles",
  "PUT /stream/{id}/hold": "control_stream",
  "PUT /stream/{id}/switch": "control_stream",
  "PUT /stream/{id}/key": "control_stream",
  "POST /stream/{id}/key": "control_stream",
  "PUT /stream/{id}/stop": "control_stream",
  "PUT /stream/{id}/lock": "control_stream",
  "PUT /stream/{id}/unlock": "control_stream",
  "DELETE /stream/{id}": "control_stream",

  "GET /refusal": "view_refusals",

  "GET /live/{file}": "view",

  "GET /session": "view",
  "GET /session/{client_id}": "view",
  "GET /session/{client_id}/history": "view",
  "GET /session/{client_id}/timeline": "view",
  "POST /session/{client_id}/kick": "control_stream",
  "PUT /session/{client_id}/bitrate": "control_stream",
  "POST /session/{client_id}/upstream": "change_upstreams",
  "DELETE /session/{client_id}/upstream/{id}": "change_upstreams",
  "GET /stream/{id}/upstream": "view",
  "POST /stream/{id}/upstream": "change_upstreams",
  "DELETE /stream/{id}/upstream/{upstream_id}": "change_upstreams",
  "PUT /stream/{id}/upstream/{upstream_id}/pause": "change_upstreams",
  "PUT /stream/{id}/upstream/{upstream_id}/resume": "change_upstreams",
  "POST /stream/{id}/upstream/{upstream_id}/retry": "change_upstreams",
  "POST /stream/{id}/upstream/{upstream_id}/test": "change_upstreams",

  "POST /stream/{id}/play-token": "create_token",

  "GET /token": "view_tokens",
  "DELETE /token/{id}": "revoke_token",

  "POST /webcaster": "create_token",
  "POST /webcaster/verify": "anyone",
  "POST /webcaster/stream": "anyone",
  "POST /webcaster/revoke": "revoke_token",
  "GET /.well-known/jwks.json": "anyone",

  "POST /login": "anyone",
  "POST /login/password": "anyone",
  "POST /logout": "anyone",
  "GET /me": "view",
  "PUT /me/password": "change_own_password",

  "GET /deployment": "view_deployment",
  "GET /deployment/organisation": "view_deployment",

  "POST /capture": "capture",
  "GET /capture/{id}": "capture",
  "GET /capture/{id}/file": "capture",
  "DELETE /capture/{id}": "capture",

  "GET /openapi.json": "anyone",
  "GET /docs": "anyone",
  "GET /docs/{file}": "anyone",
  "GET /sdk/manifest.json": "anyone",
  "GET /sdk/{file}": "anyone",
  "GET /logo/{file}": "anyone",
  "GET /broadcast": "anyone",
  "GET /broadcast/{file}": "anyone",
  "GET /dashboard": "anyone",
  "GET /dashboard/file/{file}": "anyone",
  "GET /docs/guide": "anyone",
  "GET /docs/guide/{page}": "anyone",
  "GET /docs/guide/file/{file}": "anyone",
} as const satisfies Readonly<Record<string, Action | "anyone">>;

/** Method and path in OpenAPI's notation. */
export type RouteName = keyof typeof ROUTES;

/** Throws `RoleRequired` with the least role required. */
export function requireRole(role: Role, action: Action): void {
  const least = LEAST_ROLE[action];
  // A role includes all that follow it in the list.
  if (ROLES.indexOf(role) > ROLES.indexOf(least)) throw new RoleRequired(least);
}

/** Whether the action concerns the whole deployment. */
export function isForOperators(action: Action): boolean {
  return OPERATORS.has(action);
}

/** Throws `ScopeRequired` for an action that concerns more than the streams of one tag. */
export function requireWholeOrganisation(action: Action): void {
  if (!SCOPED.has(action)) throw new ScopeRequired();
}
