// The caller of a request as the log names it. Ids only: nothing in the log grants access.
import { createHash } from "node:crypto";
import type { Context } from "hono";

/** Characters of a session's hash that are logged: enough to tell a person's sessions apart, and to find one in the
 *  store. */
const SESSION_MARK_LENGTH = 12;

export interface LoggedCaller {
  /** `whip_session`: authorised by the session's URL. */
  readonly caller: "key" | "user" | "token" | "whip_session";
  /** Id of the API key or of the person, or the token's jti. */
  readonly callerId?: string;
  /** For a person: the beginning of the session's hash. */
  readonly session?: string;
  /** Id of the organisation. */
  readonly organisation?: string;
  /** For a token that was only verified: the hash of the organisation that issued it. */
  readonly organisationHash?: string;
}

/** What a request was about, when its route does not show it. */
export interface LoggedSubject {
  readonly organisation?: string;
  /** Id: names are secrets. */
  readonly stream?: string;
  readonly clientId?: number;
}

/** Adds fields to the request's log line. */
export function noteForLog(c: Context, noted: LoggedCaller | LoggedSubject): void {
  c.set("noted", { ...c.get("noted"), ...noted });
}

/** The fields noted so far. */
export function notedForLog(c: Context): Partial<LoggedCaller> & LoggedSubject {
  return c.get("noted") ?? {};
}

/** A caller by API key, or a person; `sessionId` is the person's. */
export function loggedCaller(
  {
    who,
    organisation,
  }: {
    readonly who: { readonly kind: "key" | "user"; readonly id: string };
    readonly organisation: { readonly id: string };
  },
  sessionId: string | null,
): LoggedCaller {
  const session = who.kind === "user" && sessionId !== null ? { session: sessionMark(sessionId) } : {};
  return { caller: who.kind, callerId: who.id, ...session, organisation: organisation.id };
}

function sessionMark(sessionId: string): string {
  return createHash("sha256").update(sessionId).digest("hex").slice(0, SESSION_MARK_LENGTH);
}
