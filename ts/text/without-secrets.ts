// Text for people without the secrets that addresses in it may hold.

/** Everything behind `?` in an address may be a secret, and so may everything before `@`. */
export function withoutSecrets(text: string): string {
  return text.replace(/(\b[a-z]+:\/\/)[^\s/@]*@/gi, "$1…@").replace(/(\b[a-z]+:\/\/[^\s?]*)\?[^\s)"]*/gi, "$1?…");
}
