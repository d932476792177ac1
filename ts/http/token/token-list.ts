// /token: the web tokens and play tokens that the organisation has created, newest first, and how one is revoked (T7).
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { UnknownRecord } from "../../errors.ts";
import { changed } from "../../organisation/audit.ts";
import type { Caller } from "../../organisation/callers.ts";
import { namesOf, seesNames } from "../../organisation/reads/names.ts";
import { findStream } from "../../organisation/streams.ts";
import type { Schema } from "../../store/schema.ts";
import type { Revocations } from "../../token/revocations.ts";
import { checkRevocations, revokeTokenOf } from "../../token/revoking.ts";
import { type ListedToken, listed, listTokens, TOKEN_WINDOW } from "../../token/token-list.ts";
import { findToken, type TokenRecords } from "../../token/token-records.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { Token, tokenRecord } from "../records/token.ts";
import { cursorOf, pageOf, pageQuery } from "../request/page.ts";
import { text, timeFilters } from "../request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
/** Longest id in a filter or an address, characters. */
const ID_LIMIT = 64;
const Page = cursorOf("token", z.tuple([z.int(), text({ most: ID_LIMIT })]));

export const TOKEN_LIST_ROUTES = {
  "GET /token": {
    tag: "Tokens",
    summary: "Web tokens and play tokens that were created, newest first",
    description:
      "Broadcast links contain web tokens. A token is listed until 30 days after it has expired; an organisation's list " +
      "has 50,000 at most, and beyond that those that expire first are no longer listed. The tokens themselves are not kept. " +
      `With both \`stream\` and \`who\`, one request looks at ${TOKEN_WINDOW} entries at most: a page may then be ` +
      "shorter than `quantity` and still have a next one, as x-next-cursor says.",
    query: z.object({
      ...pageQuery(QUANTITY, Page),
      stream: text({ most: ID_LIMIT }).optional().openapi({ description: "Only for the stream with this id" }),
      who: text({ most: ID_LIMIT })
        .optional()
        .openapi({ description: "Id of a person or key: only tokens created by them" }),
      ...timeFilters(),
    }),
    answer: z.array(Token),
    errors: [404],
  },
  "DELETE /token/{id}": {
    tag: "Tokens",
    summary: "Revoke a token",
    description:
      "The token is never valid again, and a running broadcast that started with it ends. Players that already play " +
      "continue. A token that is not listed can be revoked with POST /webcaster/revoke.",
    answer: Token,
    errors: [404],
  },
} satisfies Declarations;

export function tokenListRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    /** The same store for reads that must not delay what `db` does. */
    readonly reads: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly revocations?: Revocations;
    readonly tokenRecords: Pick<TokenRecords, "flush">;
  },
): Routes["hono"] {
  const { db, reads, clock, revocations, tokenRecords } = deps;
  const routes = newRoutes(deps, TOKEN_LIST_ROUTES);

  routes.guarded("GET /token", async (c, caller, { query }) => {
    const { quantity, cursor: behind = null, who = null, from = null, to = null } = query;
    const { id: organisationId } = caller.organisation;
    await tokenRecords.flush();
    const stream = query.stream === undefined ? null : await findStream(reads, organisationId, query.stream, null);
    const filter = { organisationId, name: stream?.name ?? null, who, from, to, behind, quantity: quantity + 1 };
    const { tokens, rest } = await listTokens(reads, filter);
    const positionOf = ({ made_at, id }: ListedToken): [number, string] => [made_at, id];
    const page = pageOf(c, tokens, { quantity, cursor: Page, positionOf }, rest);
    return await answer(c, caller, page, (records) => records);
  });

  routes.guarded("DELETE /token/{id}", async (c, caller) => {
    const { organisation } = caller;
    const id = c.req.param("id");
    const now = clock.now();
    await tokenRecords.flush();
    const row = id.includes("\0") ? undefined : await findToken(db, organisation.id, id);
    if (row === undefined) throw new UnknownRecord("token");
    const exp = Math.ceil(Number(row.expires_at) / 1000);
    if (row.revoked_at === null) checkRevocations(revocations, organisation, "id");
    const change = { action: "token.revoke", subject: id, detail: { streamname: row.name } };
    await changed(db, caller, now, change, (trx) => revokeTokenOf(trx, organisation, { jti: id, exp }, now));
    await revocations?.refresh();
    const revoked = await listed(db, organisation.id, [{ ...row, revoked_at: row.revoked_at ?? now }]);
    return await answer(c, caller, revoked, ([record]) => record);
  });

  return routes.hono;

  async function answer(
    c: Context,
    caller: Caller,
    tokens: readonly ListedToken[],
    of: (records: readonly z.infer<typeof Token>[]) => unknown,
  ): Promise<Response> {
    const makers = seesNames(caller) ? tokens.map(({ who }) => who) : [];
    const nameOf = await namesOf(reads, caller.organisation.id, makers);
    return c.json(of(tokens.map((token) => tokenRecord(token, nameOf, clock.now()))) as object);
  }
}
