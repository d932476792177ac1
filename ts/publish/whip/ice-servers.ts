// What a client is told about STUN and TURN: one Link value per server (RFC 9725 4.6), TURN with credentials that any
// server with the same secret accepts (TURN REST, draft-uberti-behave-turn-rest-00).
import { createHmac } from "node:crypto";

/** How long credentials open an allocation, seconds. */
const VALID_S = 3_600;

/** The Link values of `servers` (`stun:`, `turn:` or `turns:` URIs) for the publish `clientId`. */
export function iceServerLinks(
  servers: readonly string[],
  turnSecret: string | null,
  clientId: number,
  now: number,
): readonly string[] {
  const username = `${Math.floor(now / 1_000) + VALID_S}:${clientId}`;
  return servers.map((uri) => {
    const link = `<${uri}>; rel="ice-server"`;
    if (turnSecret === null || !/^turns?:/i.test(uri)) return link;
    const credential = createHmac("sha1", turnSecret).update(username).digest("base64");
    return `${link}; username="${username}"; credential="${credential}"`;
  });
}
