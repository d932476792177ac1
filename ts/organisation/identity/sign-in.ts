// Sign-in at the identity provider of an organisation: sends the browser there, and opens a session for the person who
// comes back. What one browser began is kept in its own cookie, encrypted, so that any node can finish it.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { TooManyRequests } from "../../errors.ts";
import { inTime, steadyClock } from "../../in-time.ts";
import { RecentMap } from "../../limits/recent-map.ts";
import { reasonOf } from "../../reason.ts";
import { isEnabled } from "../../store/enabled.ts";
import type { OrganisationTable, Schema } from "../../store/schema.ts";
import type { SecretBox } from "../../store/secret-box.ts";
import { recordChange } from "../audit.ts";
import type { LoginThrottle } from "../login-throttle.ts";
import type { Logins } from "../logins.ts";
import { type Claims, claimValues, emailOf, roleFor } from "./claims.ts";
import type { Binding, Client, Identified, Issuers } from "./issuer.ts";
import { personIdentified } from "./known-people.ts";
import type { IdentityProviders, StoredProvider } from "./provider.ts";

/** How long a person may take at the provider, ms. */
export const SIGN_IN_LIMIT_MS = 600_000;
/** States kept in memory so that none is used twice; the oldest are forgotten first. A provider accepts a code once. */
const USED_LIMIT = 10_000;
/** Time between two audit entries of an organisation about a provider at which nobody can begin, ms, and organisations for
 *  which the last one is remembered. */
const FAILURES_EVERY_MS = 60_000;
const RECORDED_LIMIT = 1_000;
/** Sign-ins that wait for the provider of one organisation at the same time, and for all: one that hangs keeps nobody else
 *  out. */
const UNDER_WAY_LIMIT = 16;
const ALL_UNDER_WAY_LIMIT = 512;
/** Longest text that the provider or the library says, for the audit log, characters; and values of a claim. */
const CAUSE_LIMIT = 300;
const VALUES_LIMIT = 20;
/** OpenID Connect Core section 2. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;
const PURPOSE = "sign-in at an identity provider";
const SESSION_PURPOSE = "session at an identity provider";
/** Longest ID token that is kept for the sign-out, characters: browsers keep cookies of 4,096 bytes. */
const ID_TOKEN_LIMIT = 2_600;
/** How long a sign-out waits for the provider's metadata, ms. */
const SIGN_OUT_LIMIT_MS = 2_000;

/** Why nobody is signed in. */
export type Refusal =
  | "not_configured"
  | "not_enabled"
  /** Begun in another browser or too long ago, or finished already. */
  | "expired"
  /** By the person, or by the provider. */
  | "denied"
  | "provider_failed"
  | "no_role"
  | "no_email"
  | "email_taken"
  | "too_many_people"
  | "too_many_attempts";

export interface Refused {
  readonly refused: Refusal;
}

interface Sent {
  readonly location: string;
  readonly cookie: string;
}

/** The id of a new session, and a cookie for `endAtProvider`. */
export interface SignedIn {
  readonly sessionId: string;
  readonly cookie: string;
}

/** What comes back from the provider. */
export interface ProviderAnswer {
  /** Of the organisation. */
  readonly hash: string;
  /** The address to which the provider sent the browser: the redirect URI with a query. */
  readonly url: URL;
  /** null: the browser has none. */
  readonly cookie: string | null;
  readonly address: string;
  readonly requestId: string;
}

/** What the cookie of a session holds. */
interface Opened {
  readonly hash: string;
  /** null: too long for a cookie. */
  readonly idToken: string | null;
}

/** What the cookie of a sign-in holds. */
interface Begun extends Binding {
  readonly hash: string;
  /** Epoch ms. */
  readonly at: number;
}

export interface IdentitySignInDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "info" | "warn">;
  readonly secretBox: SecretBox;
  readonly providers: IdentityProviders;
  /** Loads what speaks with providers: a service where nobody signs in this way does without it. */
  readonly openIssuers: () => Promise<Issuers>;
  readonly logins: Pick<Logins, "openFor">;
  readonly throttle: LoginThrottle;
}

export class IdentitySignIn {
  readonly #deps: IdentitySignInDeps;
  readonly #steady: { now(): number };
  /** State → when it is forgotten. */
  readonly #used = new Map<string, number>();
  /** When the last failure to begin was recorded, by organisation. */
  readonly #recorded = new RecentMap<string, number>(RECORDED_LIMIT);
  /** By the hash in the request, while it is more than 0. */
  readonly #underWay = new Map<string, number>();
  #allUnderWay = 0;

  constructor(deps: IdentitySignInDeps) {
    this.#deps = deps;
    this.#steady = steadyClock(deps.clock);
  }

  /** Where the browser goes, and the cookie it takes along. `hash`: of the organisation. */
  begin(hash: string, redirectUri: string, requestId: string): Promise<Sent | Refused> {
    return this.#bounded(hash, async (): Promise<Sent | Refused> => {
      const found = await this.#providerOf(hash);
      if ("refused" in found) return found;
      const { organisation, provider } = found;
      const issuers = await this.#deps.openIssuers();
      const begun: Begun = { hash, at: this.#deps.clock.now(), ...issuers.newBinding() };
      const client = await this.#clientOf(organisation, provider);
      try {
        const url = await issuers.authorizationUrl(client, begun, redirectUri, provider.scope);
        return { location: url.href, cookie: this.#deps.secretBox.seal(JSON.stringify(begun), PURPOSE) };
      } catch (error) {
        // Anyone may begin: not every attempt leaves an entry in the audit log.
        if (!this.#isRecordedNow(organisation.id)) return { refused: "provider_failed" };
        return await this.#refuse(organisation, requestId, "provider_failed", { cause: causeOf(error) });
      }
    });
  }

  /** The id of a new session. */
  async finish({ hash, url, cookie, address, requestId }: ProviderAnswer): Promise<SignedIn | Refused> {
    const begun = this.#unsealed<Begun>(cookie, PURPOSE);
    const isOwn = begun !== null && begun.hash === hash && isSame(begun.state, url.searchParams.get("state") ?? "");
    const age = begun === null ? 0 : this.#deps.clock.now() - begun.at;
    if (!isOwn || age < 0 || age >= SIGN_IN_LIMIT_MS || !this.#isFirstUse(begun.state)) return { refused: "expired" };
    const name = `identity provider of ${hash} from ${address}`;
    try {
      this.#deps.throttle.attempt(name, address);
    } catch (error) {
      if (error instanceof TooManyRequests) return { refused: "too_many_attempts" };
      throw error;
    }
    const outcome = await this.#bounded(hash, () => this.#finished(begun, url, requestId));
    if ("sessionId" in outcome) this.#deps.throttle.succeeded(name, address);
    return outcome;
  }

  /** Where a browser with this cookie ends its session at the provider; null when there is no such place, or the provider
   *  does not say it in time. */
  async endAtProvider(cookie: string): Promise<string | null> {
    const opened = this.#unsealed<Opened>(cookie, SESSION_PURPOSE);
    if (opened === null) return null;
    const url = this.#bounded(opened.hash, () => this.#endSessionUrl(opened)).catch((error: unknown) => {
      this.#deps.log.warn({ cause: causeOf(error) }, "no sign-out at the identity provider");
      return null;
    });
    const known = await inTime(SIGN_OUT_LIMIT_MS, url, null);
    return known instanceof URL ? known.href : null;
  }

  async #endSessionUrl({ hash, idToken }: Opened): Promise<URL | null> {
    const found = await this.#providerOf(hash);
    if ("refused" in found) return null;
    const client = await this.#clientOf(found.organisation, found.provider);
    return await (await this.#deps.openIssuers()).endSessionUrl(client, idToken);
  }

  async #finished(begun: Begun, url: URL, requestId: string): Promise<SignedIn | Refused> {
    const found = await this.#providerOf(begun.hash);
    if ("refused" in found) return found;
    const { organisation, provider } = found;
    const error = url.searchParams.get("error");
    if (error !== null) {
      const cause = `${error}: ${url.searchParams.get("error_description") ?? ""}`.slice(0, CAUSE_LIMIT);
      return await this.#refuse(organisation, requestId, "denied", { cause });
    }
    const client = await this.#clientOf(organisation, provider);
    let identified: Identified;
    try {
      const isEnough = (given: Claims) => emailOf(given) !== null && claimValues(given, provider.roleClaim).length > 0;
      identified = await (await this.#deps.openIssuers()).claims(client, begun, url, isEnough);
    } catch (failure) {
      return await this.#refuse(organisation, requestId, "provider_failed", { cause: causeOf(failure) });
    }
    const outcome = await this.#admitted(organisation, provider, identified.claims, requestId);
    if ("refused" in outcome) return outcome;
    const idToken = identified.idToken.length > ID_TOKEN_LIMIT ? null : identified.idToken;
    const opened: Opened = { hash: begun.hash, idToken };
    return { ...outcome, cookie: this.#deps.secretBox.seal(JSON.stringify(opened), SESSION_PURPOSE) };
  }

  async #admitted(
    organisation: OrganisationTable,
    provider: StoredProvider,
    claims: Claims,
    requestId: string,
  ): Promise<{ readonly sessionId: string } | Refused> {
    const email = emailOf(claims);
    const subject = String(claims["sub"]);
    if (!SUBJECT.test(subject)) {
      return await this.#refuse(organisation, requestId, "provider_failed", {
        cause: "sub is not up to 255 characters of ASCII",
      });
    }
    const role = roleFor(claims, provider.roleClaim, provider.roles);
    const who = { subject, email: email?.email ?? null };
    if (role === null) {
      const values = claimValues(claims, provider.roleClaim).slice(0, VALUES_LIMIT);
      return await this.#refuse(organisation, requestId, "no_role", { ...who, claim: provider.roleClaim, values });
    }
    const now = this.#deps.clock.now();
    const { issuer } = provider;
    const identified = { organisationId: organisation.id, issuer, subject, email, role };
    const outcome = await this.#deps.db.transaction().execute(async (trx) => {
      const known = await personIdentified(trx, identified, now);
      if ("refused" in known) return known;
      const { person, isNew, kept } = known;
      const sessionId = await this.#deps.logins.openFor(trx, person.id);
      const actor = { organisation, who: { kind: "user", id: person.id } as const, requestId };
      const detail = {
        email: person.email,
        role: person.role,
        issuer,
        subject,
        ...(isNew && { added: true }),
        ...(kept !== null && { role_kept: `${role} by claim, but this is ${kept}` }),
      };
      await recordChange(trx, actor, now, { action: "user.sign_in", subject: person.id, detail });
      return { sessionId, personId: person.id };
    });
    if ("refused" in outcome) return await this.#refuse(organisation, requestId, outcome.refused, who);
    this.#deps.log.info(
      { organisation: organisation.id, personId: outcome.personId },
      "signed in at the identity provider",
    );
    return { sessionId: outcome.sessionId };
  }

  async #refuse(
    organisation: OrganisationTable,
    requestId: string,
    refused: Refusal,
    detail: Readonly<Record<string, unknown>>,
  ): Promise<Refused> {
    this.#deps.log.warn({ organisation: organisation.id, refused, cause: detail["cause"] }, "sign-in refused");
    const actor = { organisation, who: { kind: "user", id: null } as const, requestId };
    const change = { action: "user.sign_in_refused", subject: organisation.id, detail: { reason: refused, ...detail } };
    await recordChange(this.#deps.db, actor, this.#deps.clock.now(), change);
    return { refused };
  }

  async #providerOf(
    hash: string,
  ): Promise<{ readonly organisation: OrganisationTable; readonly provider: StoredProvider } | Refused> {
    const rows = this.#deps.db.selectFrom("organisation").selectAll().where("hash", "=", hash);
    const organisation = /^[A-Za-z0-9]{1,32}$/.test(hash) ? await rows.executeTakeFirst() : undefined;
    const provider = organisation === undefined ? null : await this.#deps.providers.of(organisation.id);
    if (organisation === undefined || provider === null) return { refused: "not_configured" };
    return isEnabled(organisation, this.#deps.clock.now()) ? { organisation, provider } : { refused: "not_enabled" };
  }

  async #clientOf({ id }: OrganisationTable, { issuer, clientId }: StoredProvider): Promise<Client> {
    return { organisationId: id, issuer, clientId, secret: await this.#deps.providers.secretOf(id) };
  }

  #isRecordedNow(organisationId: string): boolean {
    const now = this.#steady.now();
    if (now < (this.#recorded.get(organisationId) ?? Number.NEGATIVE_INFINITY) + FAILURES_EVERY_MS) return false;
    this.#recorded.set(organisationId, now);
    return true;
  }

  async #bounded<T>(hash: string, work: () => Promise<T>): Promise<T | Refused> {
    const ofIt = this.#underWay.get(hash) ?? 0;
    if (ofIt >= UNDER_WAY_LIMIT || this.#allUnderWay >= ALL_UNDER_WAY_LIMIT) return { refused: "too_many_attempts" };
    this.#underWay.set(hash, ofIt + 1);
    this.#allUnderWay += 1;
    try {
      return await work();
    } finally {
      this.#allUnderWay -= 1;
      const left = (this.#underWay.get(hash) ?? 1) - 1;
      if (left > 0) this.#underWay.set(hash, left);
      else this.#underWay.delete(hash);
    }
  }

  #unsealed<T>(cookie: string | null, purpose: string): T | null {
    try {
      return cookie === null ? null : (JSON.parse(this.#deps.secretBox.open(cookie, purpose)) as T);
    } catch {
      return null; // made up, or cut off
    }
  }

  #isFirstUse(state: string): boolean {
    const now = this.#steady.now();
    for (const [old, until] of this.#used) {
      if (until > now && this.#used.size < USED_LIMIT) break;
      this.#used.delete(old);
    }
    if (this.#used.has(state)) return false;
    this.#used.set(state, now + SIGN_IN_LIMIT_MS);
    return true;
  }
}

/** In words, and without what the library attaches: its errors hold responses, with codes and tokens. */
function causeOf(error: unknown): string {
  const { cause } = error as { readonly cause?: unknown };
  const inner = cause instanceof Error ? `: ${cause.message}` : "";
  const { error: code } = error as { readonly error?: unknown };
  return `${reasonOf(error)}${typeof code === "string" ? ` (${code})` : ""}${inner}`.slice(0, CAUSE_LIMIT);
}

function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
