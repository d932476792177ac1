// The client side of WHIP (RFC 9725): offer, ICE restart, metadata, end. Every request has a time limit; a refusal of
// the service becomes an error with the service's own text.
import { WebcasterError } from "./pure/errors.ts";
import { GONE, refusal } from "./pure/problem.ts";
import { type IceServer, iceServersOf } from "./pure/sdp.ts";

/** For an offer: meanwhile the customer is asked, for up to 10 s. */
const OFFER_LIMIT_MS = 15_000;
/** For any other request of a session. */
const REQUEST_LIMIT_MS = 3_000;
const FRAGMENT_TYPE = "application/trickle-ice-sdpfrag";

/** The handler of a metadata message at the receiver. */
export type MetadataHandlerName = "onMetaData" | "onCuePoint";

export interface WhipAnswer {
  readonly session: WhipSession;
  readonly answer: string;
  readonly iceServers: readonly IceServer[];
}

export class WhipSession {
  /** The session's URL: whoever has it can end the session. */
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  /** Posts an offer. It is never aborted half-way: the service may have started the session, which can only be ended by
   *  its URL. */
  static async open(endpoint: string, token: string | null, offer: string): Promise<WhipAnswer> {
    const response = await request(endpoint, {
      method: "POST",
      headers: { "content-type": "application/sdp", ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
      body: offer,
      signal: AbortSignal.timeout(OFFER_LIMIT_MS),
    });
    const url = sessionUrl(response);
    if (response.status !== 201 || url === null) {
      throw new WebcasterError("request_refused", {
        detail: "The address is not a WHIP endpoint",
        status: response.status,
      });
    }
    const session = new WhipSession(url);
    const answer = await response.text().catch((cause: unknown) => {
      // The service has started it, and nobody else has its URL.
      void session.end(true).catch(() => {});
      throw new WebcasterError("unreachable", { cause });
    });
    return { session, answer, iceServers: iceServersOf(response.headers.get("link")) };
  }

  /** Sends the credentials of an ICE restart and returns the service's. */
  async restart(fragment: string): Promise<string> {
    const headers = { "content-type": FRAGMENT_TYPE, "if-match": "*" };
    const response = await request(this.url, { method: "PATCH", headers, body: fragment });
    return await response.text();
  }

  /** Why the session has ended, as the service says for a while; null while it runs, or when that is not known. */
  async ending(): Promise<WebcasterError | null> {
    try {
      await request(this.url, { method: "GET" });
      return null;
    } catch (error) {
      return error instanceof WebcasterError && error.status === GONE ? error : null;
    }
  }

  async sendMetadata(handlerName: MetadataHandlerName, payload: Readonly<Record<string, unknown>>): Promise<void> {
    await request(`${this.url}/metadata`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ handlerName, payload }),
    });
  }

  /** Ends the session; succeeds when it has already ended. Outlives the page. `isLeft`: it was not ended deliberately,
   *  so that the service holds its upstreams and players for a while. */
  async end(isLeft = false): Promise<void> {
    const url = isLeft ? `${this.url}?left=1` : this.url;
    await request(url, { method: "DELETE", keepalive: true }).catch((error: unknown) => {
      if (!(error instanceof WebcasterError && isOver(error.status))) throw error;
    });
  }
}

/** Whether a status says that the session has ended. */
export function isOver(status: number | null): boolean {
  return status === 404 || status === GONE;
}

/** Of a started session; null when the answer names none. */
function sessionUrl({ headers, url }: Response): string | null {
  const location = headers.get("location");
  if (!location) return null;
  try {
    return new URL(location, url).href; // relative to the target of a redirect
  } catch {
    return null;
  }
}

async function request(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    // Redirects are followed with method and body (307, 308).
    response = await fetch(url, { signal: AbortSignal.timeout(REQUEST_LIMIT_MS), ...init });
  } catch (cause) {
    throw new WebcasterError("unreachable", { cause });
  }
  if (response.ok) return response;
  throw refusal(
    response.status,
    await response.text().catch(() => ""),
    response.headers.get("retry-after"),
    Date.now(),
  );
}
