// /organisation/logo and /logo: the picture that an organisation's broadcasters see on /broadcast.
import type { Kysely } from "kysely";
import { UnknownAddress } from "../../errors.ts";
import { changed } from "../../organisation/audit.ts";
import { readLogo, SIDE_LIMIT, UPLOAD_LIMIT_BYTES } from "../../organisation/logo/logo-image.ts";
import { logoFile, logoOf, removeLogo, type StoredLogo, setLogo } from "../../organisation/logo/logos.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { requiredText } from "../request/schema.ts";

/** A year, as long as a cache lifetime should be: another picture has another address. */
const CACHE = "public, max-age=31536000, immutable";
const FILE = /^([\da-f]{64})\.png$/;

const Logo = z
  .object({
    url: z.string().openapi({ description: "Its path on this service, which changes with it" }),
    width: z.int(),
    height: z.int(),
    updated_at: Time,
  })
  .nullable()
  .openapi("Logo", { description: "null for none" });
const LogoAnswer = z.object({ logo: Logo });

export const LOGO_ROUTES = {
  "GET /organisation/logo": { tag: "Organisation", summary: "Show the logo", answer: LogoAnswer },
  "PUT /organisation/logo": {
    tag: "Organisation",
    summary: "Set the logo",
    description:
      "Broadcasters see it on /broadcast, on white. It is checked and encoded anew, without its metadata. " +
      "Everyone who knows its address can load it.",
    body: z.object({
      png: requiredText().openapi({
        description: `A PNG file, base64: at most ${UPLOAD_LIMIT_BYTES} bytes, ${SIDE_LIMIT} pixels wide and high, not interlaced`,
      }),
    }),
    bodyRequired: true,
    answer: LogoAnswer,
    errors: [413],
  },
  "DELETE /organisation/logo": { tag: "Organisation", summary: "Remove the logo", answer: LogoAnswer },
  "GET /logo/{file}": {
    tag: "Documents",
    summary: "A logo",
    description: "`url` of a logo. The name changes with the picture.",
    answer: null,
    answerType: "image/png",
    errors: [404],
  },
} satisfies Declarations;

export function logoRoutes(
  deps: RouteDeps & { readonly db: Kysely<Schema>; readonly reads: Kysely<Schema>; readonly clock: { now(): number } },
): Routes["hono"] {
  const { db, reads, clock } = deps;
  const routes = newRoutes(deps, LOGO_ROUTES);

  routes.guarded("GET /organisation/logo", async (c, { organisation }) =>
    c.json(logoRecord(await logoOf(db, organisation.id))),
  );

  routes.guarded("PUT /organisation/logo", async (c, caller, { body: { png } }) => {
    const logo = readLogo(Buffer.from(png, "base64"));
    const { width, height } = logo;
    const [id, now] = [caller.organisation.id, clock.now()];
    const change = { action: "settings.logo", subject: id, detail: { width, height, bytes: logo.png.length } };
    return c.json(logoRecord(await changed(db, caller, now, change, (trx) => setLogo(trx, id, logo, now))));
  });

  routes.guarded("DELETE /organisation/logo", async (c, caller) => {
    const { id } = caller.organisation;
    const change = { action: "settings.logo_remove", subject: id };
    await changed(db, caller, clock.now(), change, (trx) => removeLogo(trx, id));
    return c.json(logoRecord(null));
  });

  routes.open("GET /logo/{file}", async (c) => {
    const [, sha256] = FILE.exec(c.req.param("file")) ?? [];
    const file = sha256 === undefined ? null : await logoFile(reads, sha256);
    if (file === null) throw new UnknownAddress();
    c.header("content-type", "image/png");
    c.header("cache-control", CACHE);
    c.header("content-security-policy", "default-src 'none'");
    c.header("cross-origin-resource-policy", "same-origin");
    return c.body(new Uint8Array(file));
  });

  return routes.hono;
}

function logoRecord(logo: StoredLogo | null): z.infer<typeof LogoAnswer> {
  if (logo === null) return { logo: null };
  const { sha256, width, height, updated_at } = logo;
  const url = `/logo/${sha256}.png`;
  return { logo: { url, width, height, updated_at: new Date(Number(updated_at)).toISOString() } };
}
