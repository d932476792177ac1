// What a publish must present before the customer is asked: the web token that its organisation requires, or the publish
// key of its stream, instead of which a web token of the stream counts, too.
import { step } from "../../step-times.ts";
import type { TokenOf } from "../../token/required-token.ts";
import type { TokenClaims } from "../../token/tokens.ts";
import { type Denied, denied } from "../denials.ts";
import { readKeyArgument } from "./key-argument.ts";
import { type KeyedStream, needsKey, type PublishKeys } from "./publish-key.ts";
import type { WrongKeys } from "./wrong-keys.ts";

export interface CredentialsDeps {
  readonly tokenOf: TokenOf;
  readonly publishKeys: PublishKeys;
  /** Slows those who guess keys. */
  readonly wrongKeys: WrongKeys;
}

/** A publish request for a stream that exists. */
export interface KeyedRequest {
  readonly address: string;
  readonly arguments: Uint8Array | null;
  /** Of a verified bearer token; null: there was none. */
  readonly claims: TokenClaims | null;
  readonly stream: KeyedStream & { readonly name: string; readonly publish_key: number | null };
  readonly settings: { readonly require_token: boolean; readonly publish_key: boolean };
}

export interface Authorised {
  /** Of the web token that came with the request; null: none did. */
  readonly claims: TokenClaims | null;
  /** Whether an argument that carries a key is ours, and not the customer's. */
  readonly hasKeyArgument: boolean;
}

const TOO_MANY_KEYS = "Too many wrong publish keys came from this address; try again in a minute";

/** Decides about one publish request, in the same way whatever its protocol. */
export async function checkCredentials(deps: CredentialsDeps, request: KeyedRequest): Promise<Authorised | Denied> {
  const { stream, settings } = request;
  const hasKeyArgument = needsKey(stream, settings);
  if (!settings.require_token && !hasKeyArgument) return { claims: request.claims, hasKeyArgument };
  const claims = await step("token", () => deps.tokenOf(request, stream.name));
  if (typeof claims !== "string") return { claims, hasKeyArgument };
  if (settings.require_token) return { ...denied("token_required"), reason: claims };
  return checkKey(deps, request) ?? { claims: request.claims, hasKeyArgument };
}

function checkKey({ publishKeys, wrongKeys }: CredentialsDeps, request: KeyedRequest): Denied | null {
  const { address, stream } = request;
  const key = readKeyArgument(request.arguments);
  // It tells nothing about the key, so it is no guess.
  if (key === null) return denied("key_missing");
  const waitS = wrongKeys.waitS(address, stream.id, key);
  if (waitS !== null) return { ...denied("too_many_names", TOO_MANY_KEYS), retryAfterS: waitS };
  if (publishKeys.isRight(key, stream)) {
    wrongKeys.right(address, stream.id, key);
    return null;
  }
  wrongKeys.wrong(address, stream.id, key);
  return denied("key_wrong");
}
