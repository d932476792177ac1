// The logos of organisations in the store, and what a broadcaster sees of an organisation.
import type { Kysely } from "kysely";
import type { Schema } from "../../store/schema.ts";
import type { LogoTable } from "../../store/tables/management-tables.ts";
import type { Logo } from "./logo-image.ts";

export type StoredLogo = Pick<LogoTable, "sha256" | "width" | "height" | "updated_at">;

/** What the broadcaster of a stream sees of its owner. */
export interface Branding {
  /** Of the stream; null for none. */
  readonly title: string | null;
  /** Name of the organisation. */
  readonly organisation: string;
  /** Hash of its logo; null for none. */
  readonly logo: string | null;
}

/** The path of a logo on this service; null for none. */
export const logoUrl = (sha256: string | null): string | null => (sha256 === null ? null : `/logo/${sha256}.png`);

export async function logoOf(db: Kysely<Schema>, organisationId: string): Promise<StoredLogo | null> {
  const stored = db.selectFrom("organisation_logo").select(["sha256", "width", "height", "updated_at"]);
  return (await stored.where("organisation_id", "=", organisationId).executeTakeFirst()) ?? null;
}

export async function setLogo(
  trx: Kysely<Schema>,
  organisationId: string,
  logo: Logo,
  now: number,
): Promise<StoredLogo> {
  const { sha256, width, height } = logo;
  const stored = { sha256, width, height, updated_at: now };
  const png = logo.png.toString("base64");
  await trx
    .insertInto("organisation_logo")
    .values({ organisation_id: organisationId, png, ...stored })
    .onConflict((conflict) => conflict.column("organisation_id").doUpdateSet({ png, ...stored }))
    .execute();
  return stored;
}

export async function removeLogo(trx: Kysely<Schema>, organisationId: string): Promise<void> {
  await trx.deleteFrom("organisation_logo").where("organisation_id", "=", organisationId).execute();
}

/** The file with this hash, whoever has it; null for none. */
export async function logoFile(db: Kysely<Schema>, sha256: string): Promise<Buffer | null> {
  const found = await db.selectFrom("organisation_logo").select("png").where("sha256", "=", sha256).executeTakeFirst();
  return found === undefined ? null : Buffer.from(found.png, "base64");
}

/** By stream name; null where there is no such stream. */
export async function brandingOf(db: Kysely<Schema>, name: string): Promise<Branding | null> {
  if (name.includes("\0") || !name.isWellFormed()) return null; // no name is like that, and the store takes none
  const found = await db
    .selectFrom("stream")
    .innerJoin("organisation", "organisation.id", "stream.organisation_id")
    .leftJoin("organisation_logo", "organisation_logo.organisation_id", "stream.organisation_id")
    .select(["stream.title", "organisation.name as organisation", "organisation_logo.sha256 as logo"])
    .where("stream.name", "=", name)
    .where("stream.state", "!=", "deleted")
    .executeTakeFirst();
  return found ?? null;
}
