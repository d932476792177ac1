// Who may do what (M4): one table, role × action.
import { RoleRequired } from "../errors.ts";
import type { Role } from "../store/schema.ts";

export type Action = "view" | "create_stream" | "create_token" | "change_webhook";

/** Least role first; a role may do what the ones before it may. */
const ROLES: readonly Role[] = ["readonly", "user", "administrator"];

/** The least role that may do it. */
const LEAST_ROLE: Readonly<Record<Action, Role>> = {
  view: "readonly",
  create_stream: "user",
  create_token: "user",
  change_webhook: "administrator",
};

/** Throws `RoleRequired` with the least role that would do. */
export function requireRole(role: Role, action: Action): void {
  const least = LEAST_ROLE[action];
  if (ROLES.indexOf(role) < ROLES.indexOf(least)) throw new RoleRequired(least);
}
