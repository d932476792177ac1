// /p/webrtc/{session}: a WHIP session while it runs (RFC 9725 4.2, 4.3; P7, P8, P12). The id in the URL is the
// capability: no Authorization is needed.
import { Hono, type MiddlewareHandler } from "hono";
import type { Config } from "../../config.ts";
import type { Ending } from "../../publish/ending/ending.ts";
import { isObject, readJsonObject } from "../../publish/whip/amf0.ts";
import type { Whip } from "../../publish/whip/whip-publishes.ts";
import type { Forward } from "../openapi.ts";
import { noteForLog } from "../request/caller.ts";
import { boundedBody, type ClientAddress } from "../request/request.ts";
import { WHIP_PATH, WhipProblem } from "./whip-problems.ts";

const FRAGMENT_TYPE = "application/trickle-ice-sdpfrag";
/** Limit of a metadata request in bytes (P12), and the handler names allowed. */
const METADATA_LIMIT_BYTES = 16_384;
const HANDLERS: readonly unknown[] = ["onMetaData", "onCuePoint"];

export interface WhipSessionDeps {
  readonly config: Pick<Config, "http" | "whip">;
  readonly whip: Whip;
  readonly clientAddress: ClientAddress;
  readonly forward: Forward;
}

export function whipSessionRoutes({ config, whip, clientAddress, forward }: WhipSessionDeps): Hono {
  const routes = new Hono();
  const session = `${WHIP_PATH}/:session`;
  const elsewhere = forward({
    about: "session",
    ends: false,
    long: false,
    idOf: async (c) => c.req.param("session") ?? null,
  });

  // Noted here, because a session that has ended is unknown by the time the request is logged.
  for (const path of [session, `${session}/metadata`]) {
    routes.use(path, elsewhere, (c, next) => {
      const found = whip.find(c.req.param("session") ?? "");
      if (found !== null) noteForLog(c, { caller: "whip_session", ...found });
      return next();
    });
  }

  const limited: MiddlewareHandler = async (c, next) => {
    const hit = whip.limit(clientAddress(c), "session");
    if (hit !== null) throw WhipProblem.limited(hit);
    await next();
  };
  /** For 120 s after its end the session answers every method with the reason (P7): clients ask before they reconnect. */
  const whileRunning: MiddlewareHandler = async (c, next) => {
    const ending = await endOf(c.req.param("session") ?? "");
    if (ending !== null) throw WhipProblem.ended(ending);
    await next();
  };
  /** Comes first (P8): a client that does not know a session learns nothing about requests. */
  const known: MiddlewareHandler = async (c, next) => {
    if (!whip.has(c.req.param("session") ?? "")) throw unknownSession();
    await next();
  };

  /** An end in memory is answered whatever the limit: only the look-up in the store costs. */
  const limitedLookUp: MiddlewareHandler = (c, next) => {
    const id = c.req.param("session") ?? "";
    return whip.has(id) || whip.recentEnd(id) !== null ? next() : limited(c, next);
  };

  // RFC 9725 4.1: an empty response, not an error.
  routes.get(session, limitedLookUp, whileRunning, (c) => c.body(null, 204));

  routes.patch(session, limited, whileRunning, known, boundedBody(), async (c) => {
    const type = c.req.header("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
    if (type !== FRAGMENT_TYPE) {
      throw WhipProblem.fault("unsupported_media_type", `A fragment must be sent as ${FRAGMENT_TYPE}`);
    }
    const fragment = await c.req.text();
    const refused = whip.refuseFragment(fragment);
    if (refused !== null) throw WhipProblem.fault("bad_fragment", refused.detail);
    const ifMatch = c.req.header("if-match")?.trim() ?? "";
    if (ifMatch === "" && !config.whip.lenientPatch) {
      throw WhipProblem.fault("precondition_required", "Send the session's entity tag as If-Match");
    }
    const patched = whip.patch(c.req.param("session"), fragment, (etag) => matches(ifMatch, etag));
    switch (patched.outcome) {
      case "added":
        return c.body(null, 204);
      case "restarted":
        c.header("etag", patched.etag);
        return c.body(patched.fragment, 200, { "content-type": FRAGMENT_TYPE });
      case "precondition_failed":
        throw WhipProblem.fault("precondition_failed", "The entity tag is not the session's current one");
      case "unknown":
        throw unknownSession();
      case "refused":
        throw patchProblem(patched.status, patched.detail);
    }
  });

  /** A DELETE of an existing session is never rate-limited; guessing session ids is. */
  const limitedGuess: MiddlewareHandler = (c, next) =>
    whip.has(c.req.param("session") ?? "") ? next() : limited(c, next);

  routes.delete(session, limitedGuess, async (c) => {
    // A client that disconnects without ending the publish, such as a page being closed, sends `left=1`: its upstreams
    // are held.
    const id = c.req.param("session");
    if (whip.end(id, c.req.query("left") === "1")) return c.body(null, 200);
    const ending = await endOf(id);
    throw ending === null ? unknownSession() : WhipProblem.ended(ending);
  });

  routes.post(`${session}/metadata`, limited, whileRunning, known, async (c) => {
    const text = await c.req.text();
    const request = Buffer.byteLength(text) <= METADATA_LIMIT_BYTES ? readJsonObject(text) : null;
    const handler = request?.handlerName;
    const payload = request?.payload;
    if (typeof handler !== "string" || !HANDLERS.includes(handler) || !isObject(payload)) {
      const detail =
        "It must be {handlerName: onMetaData or onCuePoint, payload: an object}, nested at most 6 deep and at most 16 KiB";
      throw WhipProblem.fault("bad_metadata", detail);
    }
    if (!whip.sendMetadata(c.req.param("session"), handler, payload)) throw unknownSession();
    return c.json({});
  });

  return routes;

  async function endOf(id: string): Promise<Ending | null> {
    const recent = whip.recentEnd(id);
    return recent !== null || whip.has(id) ? recent : ((await whip.findEnd(id)) ?? null);
  }
}

function unknownSession(): WhipProblem {
  return WhipProblem.fault("unknown_session", "It has ended or never existed");
}

/** The core's refusals of a well-formed fragment. */
function patchProblem(status: number, detail: string): WhipProblem {
  if (status === 404) return unknownSession();
  if (status === 429) return WhipProblem.fault("too_many_requests", detail, 2);
  return WhipProblem.fault("bad_fragment", detail);
}

/** RFC 9110 13.1.1, strong comparison; clients also write the asterisk in quotes, as the RFC's own example does. Absent
 *  only where that is allowed. */
function matches(ifMatch: string, etag: string): boolean {
  return ["", "*", '"*"'].includes(ifMatch) || ifMatch.split(",").some((tag) => tag.trim() === etag);
}
