// What keys and people may do.

/** Roles, the most powerful first. */
export const ROLES = ["administrator", "user", "readonly"] as const;
export type Role = (typeof ROLES)[number];
