// The settings of web tokens, included in settings.ts.
import { integer, oneOf, text } from "../setting-kinds.ts";
import type { SettingValue } from "../settings.ts";

export interface TokenConfig {
  readonly alg: SettingValue<"token.alg">;
  readonly issuer: string;
  /** Age at which the signing key is replaced; 0: never automatically. */
  readonly rotateDays: number;
  readonly unknownStreams: SettingValue<"token.unknown_streams">;
}

export const TOKEN_SETTINGS = {
  "token.alg": {
    ...oneOf("ES256", "RS256", "EdDSA", "Ed25519"),
    env: "HEADGATE_TOKEN_ALG",
    fallback: "ES256",
    meaning: "signature of new web tokens: ES256, RS256, EdDSA, or Ed25519 (the same by its newer name)",
  },
  "token.issuer": { ...text, env: "HEADGATE_TOKEN_ISSUER", fallback: "headgate", meaning: "iss of web tokens" },
  "token.rotate_days": {
    ...integer(0, 3_650, "days from 0 to 3650 (0: never automatically)"),
    env: "HEADGATE_TOKEN_ROTATE_DAYS",
    fallback: 90,
    meaning: "age at which the key that signs web tokens is replaced; 0: never automatically",
  },
  "token.unknown_streams": {
    ...oneOf("allow", "refuse"),
    env: "HEADGATE_TOKEN_UNKNOWN_STREAMS",
    fallback: "allow",
    meaning:
      "web tokens for a stream that does not exist: allow, or refuse (404) unless the request says unchecked: true",
  },
} as const;
