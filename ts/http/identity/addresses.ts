// The addresses of an organisation for sign-in at its identity provider.

/** Where the provider sends browsers back to. Of each organisation its own, so that the answer of one provider is never
 *  taken for that of another (RFC 9700 section 4.4). */
export function redirectUri(baseUrl: string, hash: string): string {
  return `${baseUrl}/login/identity-provider/${hash}/callback`;
}

/** The link for people. */
export function signInUrl(baseUrl: string, hash: string): string {
  return `${baseUrl}/dashboard/sign-in/${hash}`;
}
