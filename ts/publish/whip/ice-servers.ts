// The STUN and TURN servers given to a client: one Link value per server (RFC 9725 4.6) or one object in the browsers'
// form, TURN with credentials that any server with the same secret accepts (TURN REST,
// draft-uberti-behave-turn-rest-00).
import { createHmac } from "node:crypto";

/** How long the credentials are valid, seconds. */
const VALID_S = 3_600;

/** An RTCIceServer of the W3C's WebRTC. */
export interface IceServer {
  readonly urls: string;
  readonly username?: string;
  readonly credential?: string;
}

/** `servers` (`stun:`, `turn:` or `turns:` URIs) for `user`, which must not contain a colon. */
export function iceServersFor(
  servers: readonly string[],
  turnSecret: string | null,
  user: string | number,
  now: number,
): readonly IceServer[] {
  const username = `${Math.floor(now / 1_000) + VALID_S}:${user}`;
  return servers.map((urls) => {
    if (turnSecret === null || !/^turns?:/i.test(urls)) return { urls };
    return { urls, username, credential: createHmac("sha1", turnSecret).update(username).digest("base64") };
  });
}

/** The Link values of `servers` for the publish `clientId`. */
export function iceServerLinks(
  servers: readonly string[],
  turnSecret: string | null,
  clientId: number,
  now: number,
): readonly string[] {
  return iceServersFor(servers, turnSecret, clientId, now).map(({ urls, username, credential }) => {
    const link = `<${urls}>; rel="ice-server"`;
    return username === undefined ? link : `${link}; username="${username}"; credential="${credential}"`;
  });
}
