// Signature algorithms of web tokens.

/** The algorithms a web token may be signed with; no other is ever verified. EdDSA and Ed25519 are the older and the
 *  newer name of one algorithm (RFC 8037, RFC 9864). */
export const TOKEN_ALGORITHMS = ["ES256", "RS256", "EdDSA", "Ed25519"] as const;
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];
