// Links for a new password: an administrator makes one, the person uses it once.
import type { Kysely } from "kysely";
import type { Config } from "../../config.ts";
import { OtherSitePage, WrongCredentials } from "../../errors.ts";
import { changed } from "../../organisation/audit.ts";
import type { PasswordLinks } from "../../organisation/identity/password-links.ts";
import { checkPassword, hashPassword } from "../../organisation/passwords.ts";
import { changePerson, findPerson } from "../../organisation/people.ts";
import type { PersonTable, Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { baseUrlOf, isOtherSitePage } from "../request/request.ts";
import { requiredText } from "../request/schema.ts";

export const PASSWORD_LINK_ROUTES = {
  "POST /organisation/user/{id}/password-link": {
    tag: "Users",
    summary: "A link for a new password",
    description:
      "With the link the person sets a password of their own, without the former one: once, within a day. It is shown only " +
      "here; send it over a secure channel. The former password stays valid until then.",
    answer: z.object({
      url: z.string().openapi({ example: "https://headgate.example/dashboard/new-password#…" }),
      expires_at: Time,
    }),
    errors: [404],
  },
  "POST /login/password": {
    tag: "People",
    summary: "Set a new password by a link",
    description:
      "`token`: what is behind the `#` of the link. It works once: a link that is used, expired or made up gets 403, code " +
      "4002. All sessions of the person end.",
    body: z.object({
      token: requiredText().max(2_048),
      password: requiredText().openapi({ minLength: 12, maxLength: 256, example: "correct horse battery staple" }),
    }),
    bodyRequired: true,
    answer: z.object({ email: z.string().openapi({ description: "With which the person signs in" }) }),
    errors: [403],
  },
} satisfies Declarations;

export function passwordLinkRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly config: Pick<Config, "http">;
    readonly passwordLinks: PasswordLinks;
  },
): Routes["hono"] {
  const { db, clock, config, passwordLinks } = deps;
  const routes = newRoutes(deps, PASSWORD_LINK_ROUTES);

  routes.guarded("POST /organisation/user/{id}/password-link", async (c, caller) => {
    const find = (trx: Kysely<Schema>) => findPerson(trx, caller.organisation.id, c.req.param("id"));
    const change = ({ id, email }: PersonTable) => ({
      action: "user.password_link",
      subject: id,
      detail: { email },
    });
    const { token, expiresAt } = passwordLinks.tokenFor(await changed(db, caller, clock.now(), change, find));
    const url = `${baseUrlOf(c, config)}/dashboard/new-password#${token}`;
    return c.json({ url, expires_at: new Date(expiresAt).toISOString() });
  });

  routes.open("POST /login/password", async (c, { body: { token, password } }) => {
    if (isOtherSitePage(c)) throw new OtherSitePage();
    checkPassword("password", password);
    const person = await passwordLinks.personOf(token);
    if (person === null) throw new WrongCredentials();
    const { id, organisation_id: organisation, password_hash: insteadOf } = person;
    const passwordHash = await hashPassword(password);
    const actor = {
      organisation: { id: organisation },
      who: { kind: "user", id } as const,
      requestId: c.get("requestId"),
    };
    const now = clock.now();
    const what = { action: "user.password", subject: id, detail: { by: "link" } };
    // A link that is used twice at the same moment sets one password.
    await changed(db, actor, now, what, (trx) =>
      changePerson(trx, organisation, id, { role: null, passwordHash, insteadOf }, now),
    );
    return c.json({ email: person.email });
  });

  return routes.hono;
}
