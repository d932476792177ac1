// Who may broadcast by the deprecated v5 signalling, and where to: a web token (its claims decide, S1) or an API key of
// the stream's organisation.
import type { Authorise } from "../../organisation/callers.ts";
import { isSameIngestUrl } from "../../token/ingest-url.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "../../token/tokens.ts";
import { V5Fault } from "./v5-faults.ts";
import { missing, readToken, type V5Request } from "./v5-messages.ts";

/** A client's credential; it is checked at sign-in and again at each start, since it may have been revoked. */
export type V5Credential =
  | { readonly kind: "token"; readonly text: string }
  | { readonly kind: "key"; readonly text: string };

/** The target of a broadcast; `claims` of a token, null for a key. */
export interface V5Target {
  readonly streamName: Uint8Array;
  readonly streamUrl: string;
  readonly claims: TokenClaims | null;
}

export interface V5Access {
  /** Throws errors that `faultOf` translates. */
  signIn(request: Extract<V5Request, { type: "sign_in" }>): Promise<V5Credential>;
  /** Throws errors that `faultOf` translates. A token in the request takes precedence over that of the sign-in. */
  target(credential: V5Credential, request: Extract<V5Request, { type: "start_broadcast" }>): Promise<V5Target>;
}

export function createV5Access(deps: { readonly tokens: Tokens; readonly authorise: Authorise }): V5Access {
  const { tokens, authorise } = deps;

  /** An API key may broadcast to its organisation's streams if it may create tokens for them. */
  async function organisationOf(apiKey: string): Promise<string> {
    const credentials = { apiKey, sessionId: null, pageToken: null, changes: true, otherSitePage: false };
    return (await authorise(credentials, "create_token")).organisation.hash;
  }

  return {
    async signIn({ token, jwt, bintu_api_key, service_api_key }) {
      const given = jwt ?? token;
      if (given !== null && given !== "") {
        const text = readToken(given);
        await tokens.verify(text);
        return { kind: "token", text };
      }
      const key = service_api_key ?? bintu_api_key;
      if (key === "") throw new V5Fault(104001);
      if (key === null) throw new V5Fault(103000);
      await organisationOf(key);
      return { kind: "key", text: key };
    },

    async target(credential, { jwt, output, streamname }) {
      const isToken = (jwt !== null && jwt !== "") || credential.kind === "token";
      if (isToken) {
        const claims = await tokens.verify(jwt ? readToken(jwt) : credential.text);
        const isOther = isGiven(streamname) && streamname !== claims.streamname;
        if (isOther || (isGiven(output) && !isSameIngestUrl(output, claims.ingesturl))) throw new V5Fault(103004);
        if (!opensStreamsOf(claims, claims.streamname)) throw new V5Fault(103004);
        return { streamName: Buffer.from(claims.streamname), streamUrl: claims.ingesturl, claims };
      }
      const org = await organisationOf(credential.text);
      if (!isGiven(output)) throw missing("output");
      if (!isGiven(streamname)) throw missing("streamname");
      if (!opensStreamsOf({ org }, streamname)) throw new V5Fault(102001, "The stream belongs to another organisation");
      return { streamName: Buffer.from(streamname), streamUrl: output, claims: null };
    },
  };
}

function isGiven(value: string | null): value is string {
  return value !== null && value !== "";
}
