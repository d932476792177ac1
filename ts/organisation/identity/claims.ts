// What the claims of an identity provider say about a person: subject, e-mail address and role. Pure.
import { ROLES, type Role } from "../../store/tables/roles.ts";
import { readEmail } from "../people.ts";

/** A value of the claim, and the role that it gives. */
export interface RoleRule {
  readonly value: string;
  readonly role: Role;
}

/** Claims of an ID token and of the user information. */
export type Claims = Readonly<Record<string, unknown>>;

/** The most powerful role that a rule gives for the values of the claim; null when no rule matches. */
export function roleFor(claims: Claims, claim: string, rules: readonly RoleRule[]): Role | null {
  const values = claimValues(claims, claim);
  const given = rules.filter(({ value }) => values.includes(value)).map(({ role }) => role);
  return ROLES.find((role) => given.includes(role)) ?? null;
}

/** The values of a claim: a text is one value. `realm_access.roles` is the member `roles` of `realm_access`, unless a claim
 *  has that whole name. */
export function claimValues(claims: Claims, claim: string): readonly string[] {
  const value = memberOf(claims, claim) ?? claim.split(".").reduce<unknown>(memberOf, claims);
  return (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === "string");
}

/** The e-mail address of a person, in the form in which it is stored. `isVerified`: the provider has checked that it is
 *  theirs. null: they have none. */
export function emailOf(claims: Claims): { readonly email: string; readonly isVerified: boolean } | null {
  const email = storable(claims["email"]);
  if (email !== null) return { email, isVerified: claims["email_verified"] === true };
  // Of Entra: usually an e-mail address, but anybody's.
  const name = storable(claims["preferred_username"]);
  return name === null ? null : { email: name, isVerified: false };
}

function memberOf(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null && Object.hasOwn(of, name) ? (of as Claims)[name] : undefined;
}

function storable(given: unknown): string | null {
  try {
    return typeof given === "string" ? readEmail("email", given) : null;
  } catch {
    return null;
  }
}
