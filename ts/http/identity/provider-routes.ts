// /organisation/identity-provider: where the people of an organisation may sign in besides here. Administrators only.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import type { Config } from "../../config.ts";
import { InvalidValue } from "../../errors.ts";
import { changed } from "../../organisation/audit.ts";
import {
  type IdentityProvider,
  type IdentityProviders,
  ROLES_LIMIT,
  type StoredProvider,
} from "../../organisation/identity/provider.ts";
import type { CheckWebhookUrl } from "../../publish/addresses/address-guard.ts";
import type { OrganisationTable, Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, Role, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { baseUrlOf } from "../request/request.ts";
import { requiredText, text } from "../request/schema.ts";
import { redirectUri, signInUrl } from "./addresses.ts";

/** Longest texts, characters. */
const NAME_LIMIT = 256;
const SECRET_LIMIT = 1_024;
const STANDARD_SCOPE = "openid email profile";

const RoleRule = z
  .object({
    value: requiredText()
      .max(NAME_LIMIT)
      .openapi({ description: "A value of the claim, in full", example: "headgate-admins" }),
    role: Role,
  })
  .openapi("RoleRule");

const Provider = z
  .object({
    issuer: z.string().openapi({ example: "https://sso.customer.example/realms/staff" }),
    client_id: z.string().openapi({ example: "headgate" }),
    client_secret_set: z.boolean(),
    scope: z.string().openapi({ example: STANDARD_SCOPE }),
    role_claim: z.string().openapi({ example: "groups" }),
    roles: z.array(RoleRule),
    created_at: Time,
    updated_at: Time,
  })
  .openapi("IdentityProvider");

const Answer = z
  .object({
    identity_provider: z.union([Provider, z.null()]).openapi({ description: "null: there is none" }),
    redirect_uri: z.string().openapi({
      description: "The redirect URI to register at the provider",
      example: "https://headgate.example/login/identity-provider/Ab1Cd/callback",
    }),
    sign_in_url: z.string().openapi({
      description: "The page where people of the organisation sign in",
      example: "https://headgate.example/dashboard/sign-in/Ab1Cd",
    }),
  })
  .openapi("IdentityProviderSettings");

const Body = z.object({
  issuer: requiredText().openapi({
    description:
      "The issuer, exactly as the provider names it, https; its metadata are at /.well-known/openid-configuration below",
    maxLength: 2_048,
    example: "https://sso.customer.example/realms/staff",
  }),
  client_id: requiredText().max(NAME_LIMIT).openapi({ example: "headgate" }),
  client_secret: text()
    .max(SECRET_LIMIT)
    .nullable()
    .optional()
    .transform((given) => (given === "" ? null : given))
    .openapi({
      type: ["string", "null"],
      description: "Stored encrypted and never shown. Absent: unchanged; null: none, for a public client",
      maxLength: SECRET_LIMIT,
      format: "password",
    }),
  scope: text()
    .max(NAME_LIMIT)
    .refine(
      (given) => /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(given),
      "must be scopes separated by spaces",
    )
    .refine((given) => given.split(" ").includes("openid"), "must contain openid")
    .optional()
    .transform((given) => given ?? STANDARD_SCOPE)
    .openapi({ type: "string", default: STANDARD_SCOPE, example: STANDARD_SCOPE }),
  role_claim: requiredText().max(NAME_LIMIT).openapi({
    description: "The claim whose values give roles: a text or an array of texts; a dot leads into an object",
    example: "groups",
  }),
  roles: z
    .array(RoleRule)
    .min(1)
    .max(ROLES_LIMIT)
    .openapi({
      description: "The most powerful role of all matching values applies. A person without one is refused",
      example: [
        { value: "headgate-admins", role: "administrator" },
        { value: "staff", role: "readonly" },
      ],
    }),
});

export const IDENTITY_PROVIDER_ROUTES = {
  "GET /organisation/identity-provider": { tag: "Organisation", summary: "The identity provider", answer: Answer },
  "PUT /organisation/identity-provider": {
    tag: "Organisation",
    summary: "Set the identity provider",
    description:
      "People of the organisation may then sign in at an OpenID Connect provider (authorisation code flow with PKCE), and " +
      "get their role from a claim at every sign-in. Passwords stay valid. The issuer must be publicly reachable, like a " +
      "webhook; whether it answers shows at the first sign-in, and in the audit log. Another issuer ends the sessions of " +
      "people who have signed in at the former one.",
    body: Body,
    bodyRequired: true,
    answer: Answer,
  },
  "DELETE /organisation/identity-provider": {
    tag: "Organisation",
    summary: "Remove the identity provider",
    description:
      "The sessions of everyone who has signed in there end. The people stay; those without a password need a new one.",
    answer: Answer,
  },
} satisfies Declarations;

export function identityProviderRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly config: Pick<Config, "dev" | "http">;
    readonly checkWebhookUrl: CheckWebhookUrl;
    readonly identityProviders: IdentityProviders;
  },
): Routes["hono"] {
  const { db, clock, config, identityProviders } = deps;
  const routes = newRoutes(deps, IDENTITY_PROVIDER_ROUTES);

  routes.guarded("GET /organisation/identity-provider", async (c, { organisation }) =>
    c.json(record(c, organisation, await identityProviders.of(organisation.id))),
  );

  routes.guarded("PUT /organisation/identity-provider", async (c, caller, { body }) => {
    const { organisation } = caller;
    await checkIssuer(body.issuer, organisation.id);
    const provider: IdentityProvider = {
      issuer: body.issuer,
      clientId: body.client_id,
      scope: body.scope,
      roleClaim: body.role_claim,
      roles: body.roles,
    };
    const { client_secret: secret, ...detail } = body;
    const what = {
      action: "identity_provider.set",
      subject: organisation.id,
      detail: { ...detail, ...(secret !== undefined && { client_secret: secret === null ? "none" : "changed" }) },
    };
    const set = (trx: Kysely<Schema>) => identityProviders.set(trx, organisation.id, provider, secret);
    return c.json(record(c, organisation, await changed(db, caller, clock.now(), what, set)));
  });

  routes.guarded("DELETE /organisation/identity-provider", async (c, caller) => {
    const { organisation } = caller;
    const what = { action: "identity_provider.remove", subject: organisation.id };
    await changed(db, caller, clock.now(), what, (trx) => identityProviders.remove(trx, organisation.id));
    return c.json(record(c, organisation, null));
  });

  return routes.hono;

  /** Throws `InvalidValue`. */
  async function checkIssuer(issuer: string, owner: string): Promise<void> {
    const refusal = await deps.checkWebhookUrl(issuer, { dev: config.dev, owner });
    if (refusal !== null) throw new InvalidValue("issuer", refusal.reason);
    // OpenID Connect Discovery section 3; the metadata are found below it.
    if (issuer.includes("?")) throw new InvalidValue("issuer", "must not contain a query");
    if (issuer.includes("/.well-known/")) throw new InvalidValue("issuer", "must not contain /.well-known/");
  }

  function record(c: Context, { hash }: OrganisationTable, provider: StoredProvider | null): z.infer<typeof Answer> {
    const base = baseUrlOf(c, config);
    const addresses = { redirect_uri: redirectUri(base, hash), sign_in_url: signInUrl(base, hash) };
    if (provider === null) return { identity_provider: null, ...addresses };
    const shown = {
      issuer: provider.issuer,
      client_id: provider.clientId,
      client_secret_set: provider.isSecretSet,
      scope: provider.scope,
      role_claim: provider.roleClaim,
      roles: [...provider.roles],
      created_at: new Date(provider.createdAt).toISOString(),
      updated_at: new Date(provider.updatedAt).toISOString(),
    };
    return { identity_provider: shown, ...addresses };
  }
}
