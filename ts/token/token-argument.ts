// The argument `token` behind a stream name.

/** Its value; null when there is none. */
export function tokenIn(custom: Uint8Array | null): string | null {
  return new URLSearchParams(Buffer.from(custom ?? []).toString("latin1")).get("token");
}
