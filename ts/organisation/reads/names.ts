// The names of people and API keys, as their own organisation knows them.
import type { Kysely } from "kysely";
import type { AuditTable, Schema } from "../../store/schema.ts";
import type { Caller } from "../callers.ts";

/** As in the audit log. */
export interface Who {
  readonly kind: AuditTable["who_kind"];
  readonly id: string | null;
}

/** An e-mail address, or the label of a key; null for a person who was removed, a key without a label, and the operator. */
export type NameOf = (who: Who) => string | null;

/** Whether names are for this caller: people know each other, and administrators see all keys (M4). A key of a program
 *  that only broadcasts or reads needs no e-mail addresses. */
export function seesNames({ email, role, scopeTag }: Pick<Caller, "email" | "role" | "scopeTag">): boolean {
  return email !== null || (role === "administrator" && scopeTag === null);
}

/** The names of those, all of one organisation; at most as many as a page of a list has entries. */
export async function namesOf(
  db: Kysely<Schema>,
  organisationId: string,
  whos: readonly (Who | null)[],
): Promise<NameOf> {
  const ids = (kind: Who["kind"]) => [
    ...new Set(whos.flatMap((who) => (who?.kind === kind && who.id !== null ? [who.id] : []))),
  ];
  const [people, keys] = [ids("user"), ids("key")];
  const [emails, labels] = await Promise.all([
    people.length === 0
      ? []
      : db
          .selectFrom("person")
          .select(["id", "email as name"])
          .where("organisation_id", "=", organisationId)
          .where("id", "in", people)
          .execute(),
    keys.length === 0
      ? []
      : db
          .selectFrom("api_key")
          .select(["id", "label as name"])
          .where("organisation_id", "=", organisationId)
          .where("id", "in", keys)
          .execute(),
  ]);
  const known = {
    user: new Map(emails.map(({ id, name }) => [id, name])),
    key: new Map(labels.map(({ id, name }) => [id, name])),
    operator: new Map<string, string | null>(),
  };
  return ({ kind, id }) => (id === null ? null : (known[kind].get(id) ?? null));
}
