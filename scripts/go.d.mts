// Types of go.mjs.

/** Provides a Go that is new enough: the command, and what to add to its environment. Throws if there is none. */
export function provideGo(): { readonly go: string; readonly env: Readonly<Record<string, string>> };
/** Provides oapi-codegen; returns its path. */
export function provideOapiCodegen(): string;
/** Provides the WHIP client in test/fixtures/pion-whip; returns its path. */
export function providePionWhip(): string;
