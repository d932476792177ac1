// The identity provider as a server: its metadata, the address to send a browser to, and the claims that a code stands for
// (OpenID Connect Core with PKCE, by openid-client). It knows nothing of people and roles.

import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  type ServerMetadata,
} from "openid-client";
import { steadyClock } from "../../in-time.ts";
import { RecentMap } from "../../limits/recent-map.ts";
import type { Claims } from "./claims.ts";

/** How long a provider's metadata are used, and for how long a failure is repeated without another request, ms. Keys are
 *  fetched at every sign-in: a key that the provider has withdrawn signs nobody in. */
const METADATA_FRESH_MS = 300_000;
const FAILURE_FRESH_MS = 10_000;
/** Organisations whose metadata are kept; the one that was read first is forgotten first. */
const REMEMBERED_LIMIT = 1_000;
/** Limit of openid-client for each request, seconds: the fetch given to it ends earlier. */
const REQUEST_LIMIT_S = 10;
/** How far the clocks of the provider and of this machine may differ, seconds. */
const CLOCK_TOLERANCE_S = 60;

/** A request for an organisation through the address guard. */
export type Fetch = (
  owner: string,
  url: string,
  request: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | null;
  },
) => Promise<Response>;

/** Headgate as the client of a provider. */
export interface Client {
  readonly organisationId: string;
  readonly issuer: string;
  readonly clientId: string;
  /** null for a public client. */
  readonly secret: string | null;
}

/** The values that bind a response of the provider to its request. */
export interface Binding {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly verifier: string;
}

export interface Issuers {
  newBinding(): Binding;
  /** Where the browser goes. Rejects when the provider cannot be used. */
  authorizationUrl(client: Client, binding: Binding, redirectUri: string, scope: string): Promise<URL>;
  /** The claims of the person, all checks passed, and the ID token they came in. `answer`: the address to which the provider sent the browser. `isEnough`:
   *  whether those of the ID token suffice; otherwise the user information is requested too. */
  claims(client: Client, binding: Binding, answer: URL, isEnough: (claims: Claims) => boolean): Promise<Identified>;
  /** Where the browser ends its session at the provider (OpenID Connect RP-Initiated Logout); null when the provider has no
   *  such address. `idToken`: of the sign-in; null makes the provider ask the person. Rejects as `authorizationUrl` does. */
  endSessionUrl(client: Client, idToken: string | null): Promise<URL | null>;
}

export interface Identified {
  readonly claims: Claims;
  readonly idToken: string;
}

/** `dev` allows http. */
export function createIssuers(deps: {
  readonly fetch: Fetch;
  readonly clock: { now(): number };
  readonly dev: boolean;
}): Issuers {
  const { fetch, dev } = deps;
  const clock = steadyClock(deps.clock);
  const remembered = new RecentMap<string, { readonly metadata: Promise<ServerMetadata>; freshUntil: number }>(
    REMEMBERED_LIMIT,
  );

  return {
    newBinding: () => ({ state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() }),
    async authorizationUrl(client, { state, nonce, verifier }, redirectUri, scope) {
      const url = buildAuthorizationUrl(await configuration(client), {
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return secure(url, "authorization endpoint");
    },
    async endSessionUrl(client, idToken) {
      const config = await configuration(client);
      if (config.serverMetadata().end_session_endpoint === undefined) return null;
      const url = buildEndSessionUrl(config, idToken === null ? {} : { id_token_hint: idToken });
      return secure(url, "end session endpoint");
    },
    async claims(client, { state, nonce, verifier }, answer, isEnough) {
      const config = await configuration(client);
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
      const tokens = await authorizationCodeGrant(config, answer, checks);
      const claims = tokens.claims();
      const idToken = tokens.id_token;
      if (claims === undefined || idToken === undefined) throw new Error("the provider has sent no ID token");
      if (isEnough(claims) || config.serverMetadata().userinfo_endpoint === undefined) return { claims, idToken };
      return { claims: { ...(await fetchUserInfo(config, tokens.access_token, claims.sub)), ...claims }, idToken };
    },
  };

  function secure(url: URL, what: string): URL {
    if (url.protocol !== "https:" && !dev) throw new Error(`the ${what} is not https`);
    return url;
  }

  async function configuration(client: Client): Promise<Configuration> {
    const metadata = await metadataOf(client);
    const config = new Configuration(
      metadata,
      client.clientId,
      { [clockTolerance]: CLOCK_TOLERANCE_S },
      authenticationOf(client.secret, metadata),
    );
    config[customFetch] = fetchOf(client);
    config.timeout = REQUEST_LIMIT_S;
    if (dev) allowInsecureRequests(config);
    enableNonRepudiationChecks(config); // the signature of the ID token
    return config;
  }

  async function metadataOf(client: Client): Promise<ServerMetadata> {
    const key = JSON.stringify([client.organisationId, client.issuer]);
    const now = clock.now();
    const known = remembered.get(key);
    if (known !== undefined && now < known.freshUntil) return await known.metadata;
    const entry = { metadata: discovered(client), freshUntil: now + METADATA_FRESH_MS };
    remembered.set(key, entry);
    entry.metadata.catch(() => (entry.freshUntil = clock.now() + FAILURE_FRESH_MS));
    return await entry.metadata;
  }

  async function discovered(client: Client): Promise<ServerMetadata> {
    const config = await discovery(new URL(client.issuer), client.clientId, undefined, None(), {
      [customFetch]: fetchOf(client),
      timeout: REQUEST_LIMIT_S,
      execute: dev ? [allowInsecureRequests] : [],
    });
    const { supportsPKCE: _, ...metadata } = config.serverMetadata();
    // The library accepts the issuer of many tenants of Entra for each of them, and so everybody's people.
    if (new URL(metadata.issuer).href !== new URL(client.issuer).href) {
      throw new Error(`the provider names itself ${metadata.issuer.slice(0, 200)}`);
    }
    return metadata;
  }

  function fetchOf({ organisationId }: Client) {
    return async (url: string, given: { method: string; headers: Record<string, string>; body?: unknown }) => {
      const { method, headers, body = null } = given;
      return await fetch(organisationId, url, { method, headers, body: body === null ? null : String(body) });
    };
  }
}

/** Basic is what OpenID Connect assumes of a provider that says nothing, but not all decode it the same way. */
function authenticationOf(
  secret: string | null,
  { token_endpoint_auth_methods_supported }: ServerMetadata,
): ClientAuth {
  if (secret === null) return None();
  const isPost = token_endpoint_auth_methods_supported?.includes("client_secret_post");
  return isPost ? ClientSecretPost(secret) : ClientSecretBasic(secret);
}
