// What web tokens are signed with.

/** The algorithms a web token may be signed with; nothing else is ever verified. EdDSA and Ed25519 are one algorithm by
 *  its older and its newer name (RFC 8037, RFC 9864). */
export const TOKEN_ALGORITHMS = ["ES256", "RS256", "EdDSA", "Ed25519"] as const;
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];
