// The headers that may carry an API key (M3): x-service-apikey, and those that the operator names.

export const API_KEY_HEADER = "x-service-apikey";

const HOP_BY_HOP = "it is for one connection only, and proxies drop it";
const ABOUT_THE_BODY = "it describes the request";
/** Headers that already have another meaning. */
const TAKEN: ReadonlyMap<string, string> = new Map([
  ["authorization", "it carries web tokens"],
  ["proxy-authorization", "it is for proxies"],
  ["cookie", "it carries the sessions of people"],
  ["set-cookie", "it is for answers"],
  ["x-csrf-token", "it proves that a page of ours made the request"],
  ["connection", HOP_BY_HOP],
  ["keep-alive", HOP_BY_HOP],
  ["proxy-authenticate", HOP_BY_HOP],
  ["proxy-connection", HOP_BY_HOP],
  ["te", HOP_BY_HOP],
  ["trailer", HOP_BY_HOP],
  ["transfer-encoding", HOP_BY_HOP],
  ["upgrade", HOP_BY_HOP],
  ["host", ABOUT_THE_BODY],
  ["content-length", ABOUT_THE_BODY],
  ["content-type", ABOUT_THE_BODY],
  ["origin", "browsers set it"],
  ["x-forwarded-for", "proxies set it"],
]);

/** Why headers among these cannot carry API keys, one sentence for each. `names` in lower case. */
export function refusalsOfHeaders(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const reason = TAKEN.get(name);
    return reason === undefined ? [] : [`http.api_key_headers must not name ${name}: ${reason}`];
  });
}

/** What a request without a valid key is told. `more`: as below. */
export const keyWanted = (more: readonly string[]): string =>
  `send a valid API key in the header ${[...new Set([API_KEY_HEADER, ...more])].join(" or ")}`;

/** The API key of a request, null when no header has one. Two different keys count as an invalid one: they are joined
 *  by a line feed, which no header value and so no stored key contains. `more`: headers in addition to
 *  x-service-apikey. */
export function apiKeyIn(header: (name: string) => string | undefined, more: readonly string[]): string | null {
  const shown = [API_KEY_HEADER, ...more].map(header).filter((key) => key !== undefined);
  return shown.length === 0 ? null : [...new Set(shown)].join("\n");
}
