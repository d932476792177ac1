// Permissions, only for display: actions that are not permitted are hidden. The API enforces them;
// test/dashboard/dashboard-words.test.ts keeps this table equal to ts/organisation/roles.ts.
import type { Records } from "../../client/index.ts";

export type Me = Records["Me"];
export type Role = Me["role"];

/** As in ts/store/schema.ts: a role includes all that follow it. */
const ROLES: readonly Role[] = ["administrator", "user", "readonly"];

/** The least role for each action of the API, except `view_deployment`: that is `operate`, since it depends on the
 *  organisation too. */
export const LEAST_ROLE = {
  view: "readonly",
  view_deliveries: "readonly",
  view_refusals: "readonly",
  create_stream: "user",
  change_tags: "user",
  change_titles: "user",
  change_upstreams: "user",
  create_token: "user",
  revoke_token: "administrator",
  control_stream: "administrator",
  change_webhook: "administrator",
  change_settings: "administrator",
  manage_users: "administrator",
  manage_keys: "administrator",
  view_audit: "administrator",
  change_own_password: "readonly",
} as const satisfies Readonly<Record<string, Role>>;

export type Action = keyof typeof LEAST_ROLE;
/** An action, or `operate`: seeing the whole deployment, as administrators of the operator's organisation may. */
export type Permission = Action | "operate";

export function mayDo(me: Pick<Me, "role"> & { readonly operator?: boolean }, permission: Permission): boolean {
  if (permission === "operate") return me.operator === true;
  return ROLES.indexOf(me.role) <= ROLES.indexOf(LEAST_ROLE[permission]);
}

/** Name and permissions of each role, in the order of ROLES. */
export const ROLE_WORDS: Readonly<Record<Role, { readonly name: string; readonly may: string }>> = {
  administrator: {
    name: "Administrator",
    may: "Everything: webhook, settings, keys and people, and ending broadcasts.",
  },
  user: { name: "User", may: "Creates streams and broadcast links, changes tags and upstreams." },
  readonly: { name: "Read-only", may: "Sees streams, deliveries and usage, and changes nothing." },
};
