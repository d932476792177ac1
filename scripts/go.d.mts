// What go.mjs gives.

/** Sees that a Go is there that is new enough: the command, and what to add to its environment. Throws when none can be
 *  had. */
export function provideGo(): { readonly go: string; readonly env: Readonly<Record<string, string>> };
/** Sees that oapi-codegen is there; returns its path. */
export function provideOapiCodegen(): string;
