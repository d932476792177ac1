// `headgate token ls`: the web tokens and play tokens that were created in an organisation, newest first.
import { tokenRecord } from "../../http/records/token.ts";
import { namesOf } from "../../organisation/reads/names.ts";
import { withoutArguments } from "../../token/revocations.ts";
import { type ListedToken, listTokens, type TokenPosition } from "../../token/token-list.ts";
import { type AtStore, chosenOrganisation } from "../at-store.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table, timeText } from "../output.ts";
import { quantityOf, timeOf } from "../words.ts";

/** Tokens in one statement. */
const PAGE = 500;

export async function printTokens(at: AtStore, flags: GivenFlags): Promise<void> {
  const { db, now } = at;
  const { id: organisationId } = await chosenOrganisation(at, flags);
  const { quantity } = quantityOf(flags, 20);
  const filter = {
    organisationId,
    name: typeof flags.stream === "string" ? withoutArguments(flags.stream) : null,
    who: typeof flags.who === "string" ? flags.who : null,
    from: timeOf("from", flags.from),
    to: timeOf("to", flags.to),
  };
  const found: ListedToken[] = [];
  for (let behind: TokenPosition | null = null; ; ) {
    const wanted = Math.min(PAGE, quantity - found.length);
    const { tokens, rest } = await listTokens(db, { ...filter, behind, quantity: wanted });
    found.push(...tokens);
    const last = tokens.at(-1);
    behind = tokens.length === wanted && last !== undefined ? [last.made_at, last.id] : rest;
    if (behind === null || found.length >= quantity) break;
  }
  const nameOf = await namesOf(
    db,
    organisationId,
    found.map(({ who }) => who),
  );
  const records = found.map((token) => tokenRecord(token, nameOf, now));
  const rows = found.map((token, index) => [
    ...[token.id, token.kind, records[index]?.state ?? null, token.name],
    nameOf(token.who) ?? token.who.id ?? token.who.kind,
    ...[token.made_at, token.expires_at, token.last_used_at].map(timeText),
  ]);
  const heading = ["jti", "kind", "state", "stream name", "made by", "made at", "expires", "last used"];
  print(flags, records, table([heading, ...rows]));
}
