// /login, /logout, /me: people sign in with e-mail and password and get a session cookie; servers use API keys.
import type { Context } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import type { Kysely } from "kysely";
import { OtherSitePage, WrongCredentials } from "../errors.ts";
import { changed } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import type { IdentitySignIn } from "../organisation/identity/sign-in.ts";
import { AGE_LIMIT_MS, type Logins, pageTokenOf } from "../organisation/logins.ts";
import { isOperator } from "../organisation/organisations.ts";
import { checkPassword, hashPassword, passwordHolds } from "../organisation/passwords.ts";
import { changePerson, isPassword, passwordHashOf } from "../organisation/people.ts";
import type { Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, Role, type RouteDeps, type Routes, z } from "./openapi.ts";
import { loggedCaller, noteForLog } from "./request/caller.ts";
import { forgetProvider, leaveProvider } from "./request/provider-cookie.ts";
import { type ClientAddress, isOtherSitePage, SESSION_COOKIE, sessionIdOf } from "./request/request.ts";
import { requiredText } from "./request/schema.ts";

const COOKIE = { path: "/", secure: true, httpOnly: true, sameSite: "Lax" } as const;

const Me = z
  .object({
    kind: z.enum(["key", "user"]),
    id: z.string(),
    email: z.string().nullable().openapi({ description: "Of a person; null for a key" }),
    role: Role,
    scope_tag: z.string().nullable(),
    organisation: z.object({ id: z.uuid(), hash: z.string(), name: z.string() }),
    operator: z.boolean().openapi({
      description: "True for an administrator of the deployment's own organisation, who may use /deployment",
    }),
    password_set: z.boolean().openapi({
      description: "False for a key, and for a person who signs in at the identity provider only",
    }),
    csrf_token: z.string().nullable().openapi({
      description: "Send it as x-csrf-token with every request of the session that changes something; null for a key",
    }),
  })
  .openapi("Me");

const GivenPassword = requiredText().openapi({ description: "The current password", format: "password" });

export const LOGIN_ROUTES = {
  "POST /login": {
    tag: "People",
    summary: "Sign in",
    description:
      "Sets the session cookie and returns what /me does. A wrong e-mail and a wrong password get the same answer: 403, code " +
      "4002. After ten failures within 15 minutes the e-mail address is refused: 429.",
    body: z.object({
      email: requiredText().openapi({
        description: "An e-mail address, or `admin` for the first person",
        example: "ada@customer.example",
      }),
      password: GivenPassword,
    }),
    bodyRequired: true,
    answer: Me,
    errors: [403],
  },
  "POST /logout": {
    tag: "People",
    summary: "Sign out",
    description:
      "Ends the session. Without a session, nothing happens. `identity_provider`: where the browser goes to end its session at " +
      "the provider it had signed in at, too; null: none, or the provider has no such address.",
    answer: z.object({ signed_out: z.literal(true), identity_provider: z.url().nullable() }),
    errors: [403],
  },
  "GET /me": { tag: "People", summary: "Who am I?", answer: Me },
  "PUT /me/password": {
    tag: "People",
    summary: "Change your own password",
    description: "All sessions of the person end, including this one. For people, not for keys.",
    body: z.object({
      current: GivenPassword,
      password: requiredText().openapi({ minLength: 12, maxLength: 256, example: "correct horse battery staple" }),
    }),
    bodyRequired: true,
    answer: z.object({ changed: z.literal(true) }),
  },
} satisfies Declarations;

export function loginRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly logins: Logins;
    readonly identitySignIn: Pick<IdentitySignIn, "endAtProvider">;
    readonly clientAddress: ClientAddress;
  },
): Routes["hono"] {
  const { db, clock, authorise, logins, identitySignIn, clientAddress } = deps;
  const routes = newRoutes(deps, LOGIN_ROUTES);

  routes.open("POST /login", async (c, { body: { email, password } }) => {
    if (isOtherSitePage(c)) throw new OtherSitePage();
    const { id } = await logins.open(email, password, clientAddress(c));
    const shown = { apiKey: null, sessionId: id, pageToken: null, changes: false, otherSitePage: false };
    const caller = await authorise(shown, "view", (known) => noteForLog(c, loggedCaller(known, id))); // a disabled organisation's people stay out
    setCookie(c, SESSION_COOKIE, id, { ...COOKIE, maxAge: AGE_LIMIT_MS / 1_000 });
    forgetProvider(c);
    return c.json(await meRecord(caller, id));
  });

  routes.open("POST /logout", async (c) => {
    if (isOtherSitePage(c)) throw new OtherSitePage();
    const id = sessionIdOf(c);
    if (id !== null) await logins.end(id);
    deleteCookie(c, SESSION_COOKIE, COOKIE);
    return c.json({ signed_out: true, identity_provider: await leaveProvider(c, identitySignIn) });
  });

  routes.guarded("GET /me", async (c, caller) => c.json(await meRecord(caller, sessionOf(c, caller))));

  routes.guarded("PUT /me/password", async (c, caller, { body: { current, password } }) => {
    if (caller.who.kind !== "user") throw new WrongCredentials();
    checkPassword("password", password);
    const { id } = caller.who;
    deps.logins.attempt(id, clientAddress(c));
    const insteadOf = await passwordHashOf(db, id);
    if (!(await passwordHolds(insteadOf, current))) throw new WrongCredentials();
    const passwordHash = await hashPassword(password);
    const now = clock.now();
    await changed(db, caller, now, { action: "user.password", subject: id }, (trx) =>
      changePerson(trx, caller.organisation.id, id, { role: null, passwordHash, insteadOf }, now),
    );
    deleteCookie(c, SESSION_COOKIE, COOKIE);
    return c.json({ changed: true });
  });

  return routes.hono;

  async function meRecord(caller: Caller, sessionId: string | null): Promise<z.infer<typeof Me>> {
    const { id, hash, name } = caller.organisation;
    return {
      kind: caller.who.kind,
      id: caller.who.id,
      email: caller.email,
      role: caller.role,
      scope_tag: caller.scopeTag,
      organisation: { id, hash, name },
      operator: isOperator(caller),
      password_set: caller.who.kind === "user" && isPassword(await passwordHashOf(db, caller.who.id)),
      csrf_token: sessionId === null ? null : pageTokenOf(sessionId),
    };
  }
}

function sessionOf(c: Context, { who }: Caller): string | null {
  return who.kind === "user" ? sessionIdOf(c) : null;
}
