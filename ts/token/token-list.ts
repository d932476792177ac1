// The tokens that an organisation has created, newest first. One request looks at a bounded number of rows, along an
// index.
import { type Kysely, type Selectable, sql } from "kysely";
import type { Schema } from "../store/schema.ts";
import { lastInWindow } from "../store/statements/window.ts";
import type { TokenTable } from "../store/tables/token-tables.ts";

/** Rows that a request with two filters looks at. */
export const TOKEN_WINDOW = 5_000;

/** A token as it is listed. */
export interface ListedToken extends Omit<Selectable<TokenTable>, "made_by_kind" | "made_by" | "revision"> {
  /** The stream with this name in the organisation; null for none. */
  readonly stream: { readonly id: string; readonly name: string } | null;
  readonly who: { readonly kind: TokenTable["made_by_kind"]; readonly id: string | null };
  /** When it was revoked, by itself or with all tokens of its stream. */
  readonly revoked_at: number | null;
}

/** The position of a token in the list. */
export type TokenPosition = [madeAt: number, id: string];

export interface TokenFilter {
  readonly organisationId: string;
  /** Only for the stream with this name; null for all. */
  readonly name: string | null;
  /** Only those created by this person or key; null for all. */
  readonly who: string | null;
  /** Epoch ms: only those created from this time on, and before that one. */
  readonly from: number | null;
  readonly to: number | null;
  readonly behind: TokenPosition | null;
  readonly quantity: number;
}

/** `rest`: where the list continues that ended early; null when it is complete, or `tokens` are as many as requested. */
export async function listTokens(
  db: Kysely<Schema>,
  filter: TokenFilter,
): Promise<{ readonly tokens: readonly ListedToken[]; readonly rest: TokenPosition | null }> {
  const { organisationId, name, who, from, to, behind, quantity } = filter;
  const isFiltered = name !== null && who !== null;
  let near = db.selectFrom("token").selectAll().where("organisation_id", "=", organisationId);
  if (name !== null) near = near.where("name", "=", name);
  else if (who !== null) near = near.where("made_by", "=", who);
  if (from !== null) near = near.where("made_at", ">=", from);
  if (to !== null) near = near.where("made_at", "<", to);
  if (behind !== null) near = near.where(sql<boolean>`(made_at, id) < (${behind[0]}, ${behind[1]})`);
  near = near
    .orderBy("made_at", "desc")
    .orderBy("id", "desc")
    .limit(isFiltered ? TOKEN_WINDOW : quantity);
  let query = db.selectFrom(near.as("near")).selectAll();
  if (isFiltered) query = query.where("made_by", "=", who);
  const rows = await query.orderBy("made_at", "desc").orderBy("id", "desc").limit(quantity).execute();
  const tokens = await listed(db, organisationId, rows);
  if (!isFiltered || rows.length >= quantity) return { tokens, rest: null };
  const last = await lastInWindow(near.clearSelect().select(["made_at", "id"]), TOKEN_WINDOW);
  return { tokens, rest: last === undefined ? null : [Number(last.made_at), last.id] };
}

/** These rows of one organisation as they are listed. */
export async function listed(
  db: Kysely<Schema>,
  organisationId: string,
  rows: readonly Selectable<TokenTable>[],
): Promise<readonly ListedToken[]> {
  const names = [...new Set(rows.map(({ name }) => name))];
  if (names.length === 0) return [];
  const [streams, revocations] = await Promise.all([
    db
      .selectFrom("stream")
      .select(["id", "name"])
      .where("name", "in", names)
      .where("organisation_id", "=", organisationId)
      .where("state", "!=", "deleted")
      .execute(),
    db
      .selectFrom("token_revocation")
      .select(["value", "revision", "updated_at"])
      .where("kind", "=", "stream")
      .where("value", "in", names)
      .execute(),
  ]);
  const streamOf = new Map(streams.map((stream) => [stream.name, stream]));
  const revocationOf = new Map(revocations.map((each) => [each.value, each]));
  return rows.map(({ made_by_kind: kind, made_by, revision, ...row }) => {
    const ofStream = revocationOf.get(row.name);
    const withStream = ofStream !== undefined && Number(revision) < Number(ofStream.revision) ? ofStream : null;
    const revokedAt = row.revoked_at ?? withStream?.updated_at ?? null;
    return {
      ...row,
      made_at: Number(row.made_at),
      expires_at: Number(row.expires_at),
      last_used_at: row.last_used_at === null ? null : Number(row.last_used_at),
      revoked_at: revokedAt === null ? null : Number(revokedAt),
      stream: streamOf.get(row.name) ?? null,
      who: { kind, id: made_by || null },
    };
  });
}
