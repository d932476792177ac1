// The stream that a publish names, with what its organisation allows. Whoever guesses names is slowed.
import type { Kysely } from "kysely";
import type { OrganisationTable, Schema, StreamTable } from "../../store/schema.ts";
import { LIMIT_COLUMNS } from "../../store/tables/organisation-limits.ts";
import { type Denied, denied } from "../denials.ts";
import type { RefusedStream } from "../ending/refused-streams.ts";
import type { WrongNames } from "./wrong-names.ts";

export interface NamedStream
  extends Pick<StreamTable, "id" | "organisation_id" | "hold_s" | "publish_key" | "key_salt">,
    RefusedStream,
    Pick<OrganisationTable, "enabled" | "plan" | "trial_ends_at" | "webhook" | (typeof LIMIT_COLUMNS)[number]> {}

/** The stream of this name, for a broadcaster at `address`. */
export async function findNamed(
  { db, wrongNames }: { readonly db: Kysely<Schema>; readonly wrongNames: WrongNames },
  address: string,
  name: string,
): Promise<NamedStream | Denied> {
  const waitS = wrongNames.waitS(address, name);
  if (waitS !== null) return { ...denied("too_many_names"), retryAfterS: waitS };
  const found = await findStream(db, name);
  if (found === null) wrongNames.wrong(address, name);
  else wrongNames.right(address, name);
  return found ?? denied("unknown_stream");
}

/** Deleted streams count as unknown (W22a). */
export async function findStream(db: Kysely<Schema>, name: string): Promise<NamedStream | null> {
  const row = await db
    .selectFrom("stream")
    .innerJoin("organisation", "organisation.id", "stream.organisation_id")
    .select(["stream.id", "stream.organisation_id", "stream.state", "organisation.enabled", "organisation.webhook"])
    .select(["stream.refused_until", "stream.refused_reason"])
    .select(["organisation.plan", "organisation.trial_ends_at", "stream.hold_s"])
    .select(["stream.publish_key", "stream.key_salt"])
    .select(LIMIT_COLUMNS)
    .where("stream.name", "=", name)
    .where("stream.state", "<>", "deleted")
    .executeTakeFirst();
  return row ?? null;
}
