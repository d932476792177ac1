// The identity provider of an organisation: where its people may sign in, and which role they get. The client's secret is
// stored encrypted and never shown.
import type { Kysely, Selectable } from "kysely";
import { InvalidValue } from "../../errors.ts";
import type { Schema } from "../../store/schema.ts";
import type { SecretBox } from "../../store/secret-box.ts";
import type { RoleRule } from "./claims.ts";

/** Most rules of one organisation. */
export const ROLES_LIMIT = 100;

export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId: string;
  /** Scopes to request, separated by spaces. */
  readonly scope: string;
  /** The claim whose values decide the role. */
  readonly roleClaim: string;
  readonly roles: readonly RoleRule[];
}

/** As it is stored. */
export interface StoredProvider extends IdentityProvider {
  readonly isSecretSet: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface IdentityProviders {
  of(organisationId: string): Promise<StoredProvider | null>;
  /** The secret of the client; null for a public client. */
  secretOf(organisationId: string): Promise<string | null>;
  /** Sets the provider in the caller's transaction. `secret`: null for a public client; undefined: unchanged. Rejects with
   *  `InvalidValue` when the present secret would be sent to another issuer or for another client. */
  set(
    trx: Kysely<Schema>,
    organisationId: string,
    provider: IdentityProvider,
    secret: string | null | undefined,
  ): Promise<StoredProvider>;
  /** Removes the provider in the caller's transaction, and ends the sessions of the people who have signed in there. */
  remove(trx: Kysely<Schema>, organisationId: string): Promise<void>;
}

type Row = Selectable<Schema["identity_provider"]>;

export function createIdentityProviders(deps: {
  readonly db: Kysely<Schema>;
  readonly secretBox: SecretBox;
  readonly clock: { now(): number };
}): IdentityProviders {
  const { db, secretBox, clock } = deps;

  return {
    async of(organisationId) {
      const row = await rowOf(db, organisationId);
      return row === undefined ? null : providerIn(row);
    },
    async secretOf(organisationId) {
      const sealed = (await rowOf(db, organisationId))?.sealed ?? null;
      return sealed === null ? null : secretBox.open(sealed, purposeOf(organisationId));
    },
    async set(trx, organisationId, { issuer, clientId, scope, roleClaim, roles }, secret) {
      const now = clock.now();
      const former = await rowOf(trx, organisationId);
      const isSameClient = former?.issuer === issuer && former.client_id === clientId;
      if (secret === undefined && former !== undefined && former.sealed !== null && !isSameClient) {
        throw new InvalidValue("client_secret", "is required when issuer or client_id changes");
      }
      const given = typeof secret === "string" ? secretBox.seal(secret, purposeOf(organisationId)) : null;
      const changing = {
        issuer,
        client_id: clientId,
        sealed: secret === undefined ? (former?.sealed ?? null) : given,
        scope,
        role_claim: roleClaim,
        roles: JSON.stringify(roles.map(({ value, role }) => ({ value, role }))),
        updated_at: now,
      };
      if (former !== undefined && former.issuer !== issuer) await endSessions(trx, organisationId);
      const row = await trx
        .insertInto("identity_provider")
        .values({ ...changing, organisation_id: organisationId, created_at: now })
        .onConflict((conflict) => conflict.column("organisation_id").doUpdateSet(changing))
        .returningAll()
        .executeTakeFirstOrThrow();
      return providerIn(row);
    },
    async remove(trx, organisationId) {
      await endSessions(trx, organisationId);
      await trx.deleteFrom("identity_provider").where("organisation_id", "=", organisationId).execute();
    },
  };
}

async function rowOf(db: Kysely<Schema>, organisationId: string): Promise<Row | undefined> {
  const rows = db.selectFrom("identity_provider").selectAll();
  return await rows.where("organisation_id", "=", organisationId).executeTakeFirst();
}

/** Of those who have signed in at a provider of the organisation. */
async function endSessions(trx: Kysely<Schema>, organisationId: string): Promise<void> {
  const people = trx.selectFrom("person_identity").select("person_id").where("organisation_id", "=", organisationId);
  await trx.deleteFrom("person_session").where("person_id", "in", people).execute();
}

function providerIn(row: Row): StoredProvider {
  return {
    issuer: row.issuer,
    clientId: row.client_id,
    scope: row.scope,
    roleClaim: row.role_claim,
    roles: JSON.parse(row.roles) as RoleRule[],
    isSecretSet: row.sealed !== null,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  };
}

function purposeOf(organisationId: string): string {
  return `identity provider of ${organisationId}`;
}
