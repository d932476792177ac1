// WHIP publishes: from a validated request to an answer, or to our own offer (the deprecated v5 signalling), and the
// session ids by which they are patched and ended. Knows no HTTP type.
import { randomUUID } from "node:crypto";
import type { Media, SdpRefused, WhipMedia, WhipOffer, WhipPatched } from "../../media.ts";
import { withoutBrackets } from "../../network.ts";
import type { TokenClaims } from "../../token/tokens.ts";
import type { Trace } from "../../tracing/trace.ts";
import { resolveUpstream } from "../addresses/address-guard.ts";
import type { Resolve } from "../addresses/resolver.ts";
import { type Denied, denied } from "../denials.ts";
import type { Ending } from "../ending/ending.ts";
import type { Publishing } from "../lifecycle.ts";
import type { RunningPublish } from "../publishes.ts";
import type { RefusalReason } from "../refusals/reasons.ts";
import type { Refusals, RefusedPublish } from "../refusals/refusals.ts";
import { utf8 } from "../stream-name.ts";
import { type Json, writeAmf0 } from "./amf0.ts";
import { type IceServer, iceServerLinks, iceServersFor } from "./ice-servers.ts";
import { foreignUrl, readStreamUrl, type StreamUrlRules } from "./stream-url.ts";
import { createWhipLimits, type HalfOpen, type LimitHit, type WhipLimitSettings } from "./whip-limits.ts";

/** The app a WHIP publish has in the webhook: `stream_url` ends in `/live` (P2). */
const APP = "live";
/** Start bitrate for browsers: below this they start with a low resolution; kbit/s. */
const START_BITRATE_KBPS = 2_500;
/** The owner of look-ups for names of no stream: all such requests share its limit. */
const NOBODY = "nobody";

export interface WhipTarget {
  /** Stream name with its arguments, percent-decoded once, bytes. */
  readonly streamName: Uint8Array;
  readonly streamUrl: string;
  /** The signalling it came by; absent: WHIP. */
  readonly via?: "v5";
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Host name of the request: whatever it is, it counts as one of ours. */
  readonly requestHost: string;
  readonly stereo: boolean;
  /** Bitrate of the transcoded AAC, bit/s; null for the default. */
  readonly audioBitrate: number | null;
  /** Added to the connect command to a stream_url of another host (P11); null for none. */
  readonly connectInfo: { readonly [key: string]: Json } | null;
  /** Claims of a web token issued by us that came with the request; null when there was none. */
  readonly claims: TokenClaims | null;
  /** The trace the request belongs to; absent: a new one starts with the publish. */
  readonly trace?: Trace;
  /** SDP of the client; absent: we make the offer. */
  readonly offer?: string;
  /** As of `RefusedPublish`. */
  readonly mayMove?: boolean;
}

export interface WhipRequest extends WhipTarget {
  readonly offer: string;
}

/** A publish for which we make the offer; with at least one section. */
export interface WhipInvitation extends WhipTarget {
  readonly audio: boolean;
  readonly video: boolean;
  /** The browser's start bitrate, kbit/s; null for the default. */
  readonly startBitrateKbps: number | null;
}

/** `connecting`: ICE and DTLS are not complete; `reconnecting`: its own stream_url cannot be reached. */
export type WhipState = "connecting" | "connected" | "reconnecting";

export type WhipOutcome =
  | {
      readonly outcome: "opened";
      readonly session: string;
      readonly clientId: number;
      /** Ids. */
      readonly organisation: string;
      readonly stream: string;
      readonly etag: string;
      /** For an invitation it is our offer. */
      readonly answer: string;
      /** Values of the Link header, one per ICE server. */
      readonly links: readonly string[];
    }
  | SdpRefused
  | { readonly outcome: "bad_stream_url" }
  | ({ readonly outcome: "limited" } & LimitHit)
  | Denied;

/** An entity tag is a strong one of RFC 9110 8.8.3, with its quotes. */
export type PatchOutcome =
  | { readonly outcome: "unknown" }
  | { readonly outcome: "precondition_failed" }
  | { readonly outcome: "restarted"; readonly fragment: string; readonly etag: string }
  | Exclude<WhipPatched, { outcome: "restarted" }>;

export interface Whip {
  /** Null when the client may make a request. */
  limit(address: string, kind: "offer" | "session"): LimitHit | null;
  /** Validates, asks, opens, in this order: nothing is created before the customer has allowed it (P5). */
  open(request: WhipRequest): Promise<WhipOutcome>;
  /** The same with an offer of ours; pass the client's answer to `answer`. */
  invite(invitation: WhipInvitation): Promise<Exclude<WhipOutcome, SdpRefused>>;
  /** Takes the client's answer to our offer; null when it is accepted. */
  answer(session: string, answer: string): SdpRefused | null;
  /** Null when it has ended or never existed. */
  state(session: string): WhipState | null;
  /** Calls `ended` once when the session has ended; immediately when it does not run. */
  onEnded(session: string, ended: () => void): void;
  /** The STUN and TURN servers, with credentials for one client. */
  iceServers(user: string): readonly IceServer[];
  has(session: string): boolean;
  /** Why a session of this node is over, or about to be; null: it runs, or is not known any more. */
  recentEnd(session: string): Ending | null;
  /** The same for a session that does not run here, also of another node; undefined: no session has such an id. */
  findEnd(session: string): Promise<Ending | null> | undefined;
  /** The publish of a session; null when there is none (any more). */
  find(session: string): { readonly clientId: number; readonly organisation: string; readonly stream: string } | null;
  /** A trickled fragment (P8). `matches` checks the session's entity tag before anything is done. */
  patch(session: string, fragment: string, matches: (etag: string) => boolean): PatchOutcome;
  /** Why it is not a valid fragment; null when it is one. */
  refuseFragment(fragment: string): SdpRefused | null;
  /** Sends a data message to every subscriber of the publish; false when there is none (any more). */
  sendMetadata(session: string, handler: string, payload: { readonly [key: string]: Json }): boolean;
  /** Ends a session; `isLeft`: treated as lost, so that another publish may take over its upstreams and players. False
   *  when there is none (any more). */
  end(session: string, isLeft?: boolean): boolean;
}

export interface WhipDeps {
  readonly media: () => WhipMedia & Pick<Media, "snapshot">;
  readonly publishing: Pick<Publishing, "admit" | "endWhip" | "onEnded" | "ofSession" | "closed" | "endings">;
  /** Called at each use: the ports of RTMP are known only once the media core has started. */
  readonly rules: () => StreamUrlRules;
  /** Resolves the host of a stream_url that is not ours. */
  readonly resolve: Resolve;
  /** Whose stream has this name; null for none. */
  readonly organisationOf: (name: string) => Promise<string | null>;
  readonly refusals: Pick<Refusals, "note">;
  /** Allows private addresses for a stream_url that is not ours. */
  readonly dev: boolean;
  /** Makes a session's id of a random one, so that other nodes can find its owner; by default it is used as it is. */
  readonly sessionId?: (random: string) => string;
  readonly clock: { now(): number };
  readonly ice: { readonly servers: readonly string[]; readonly turnSecret: string | null };
  readonly limits: WhipLimitSettings;
}

type Opened = Exclude<WhipOutcome, SdpRefused>;

const NOT_AWAITED: SdpRefused = {
  outcome: "refused",
  code: "answer_not_awaited",
  status: 400,
  detail: "No offer is waiting for an answer",
};

export function createWhip(deps: WhipDeps): Whip {
  const { media, publishing, dev, clock, resolve, sessionId = (random) => random } = deps;
  const isConnected = (clientId: number) => media().isWhipConnected(clientId);
  const limits = createWhipLimits({ settings: deps.limits, clock, isConnected });
  /** Entity tags of their sessions. */
  const etags = new WeakMap<RunningPublish, string>();
  const find = publishing.ofSession;

  async function admit(
    request: WhipTarget,
    { offer, startBitrateKbps, place }: { offer: WhipOffer; startBitrateKbps: number; place: HalfOpen },
  ): Promise<Opened> {
    const { name, customArguments } = splitName(request.streamName);
    const text = utf8(name) ?? "";
    const rules = deps.rules();
    const ownHosts = [...rules.ownHosts, withoutBrackets(request.requestHost).toLowerCase()];
    const target = readStreamUrl(request.streamUrl, text, { ...rules, ownHosts });
    if (target.kind === "refused") return { outcome: "bad_stream_url" };
    let ownUpstream: string | null = null;
    if (target.kind === "foreign") {
      const argumentsText = customArguments === null ? null : utf8(customArguments);
      // A URL could only carry them altered (W2).
      if (customArguments !== null && argumentsText === null) {
        const refusal = denied("malformed_name", "Custom arguments are not UTF-8");
        note(request, refusal.cause, refusal.description);
        return refusal;
      }
      // A host that cannot be dialled gets the same refusal as one that is not allowed.
      const owner = (await deps.organisationOf(text)) ?? NOBODY;
      const addresses = await resolveUpstream(target.host, { exempt: dev, owner, resolve });
      if (addresses.length === 0) return { outcome: "bad_stream_url" };
      ownUpstream = foreignUrl(target, text, argumentsText);
    }
    const { address, claims, trace, offer: offered, via, mayMove = false } = request;
    const session = sessionId(randomUUID());
    const about = {
      address,
      claims,
      mayMove,
      ...(trace && { trace }),
      ...(via && { via }),
      ...(offered !== undefined && { offered }),
    };
    const asked = { app: APP, name, arguments: customArguments, session, ...about };
    const admission = await publishing.admit({ ...asked, protocol: "whip" });
    if (admission.outcome === "denied") return admission;
    const { clientId, intent, upstreams, maxBitrateKbps } = admission.publish;
    const started = await admission.start((hold) =>
      media().openWhip({
        clientId,
        name: intent.name,
        offer,
        upstreams,
        ownUpstream,
        stereo: request.stereo,
        startBitrateKbps,
        maxBitrateKbps,
        audioBitrate: request.audioBitrate,
        connectInfo: request.connectInfo === null ? null : writeAmf0(request.connectInfo),
        hold,
      }),
    );
    if (started.outcome === "denied") return started;
    const etag = newTag();
    const publish = find(session);
    if (publish !== undefined) etags.set(publish, etag);
    place.opened(clientId);
    publishing.onEnded(clientId, place.release);
    const links = iceServerLinks(deps.ice.servers, deps.ice.turnSecret, clientId, clock.now());
    const { organisationId: organisation, streamId: stream } = intent;
    return { outcome: "opened", session, clientId, organisation, stream, etag, answer: started.answer, links };
  }

  /** Notes what is refused here; publishing notes what it denies. */
  function note(request: WhipTarget, reason: RefusalReason, description: string | null): void {
    deps.refusals.note({ ...requestOf(request), request: "publish", reason, description });
  }

  async function open(request: WhipTarget, offer: WhipOffer, startBitrateKbps: number): Promise<Opened> {
    const place = limits.halfOpen(request.address);
    if ("of" in place) {
      note(request, limitReason(place), null);
      return { outcome: "limited", ...place };
    }
    let isOpen = false;
    try {
      const outcome = await admit(request, { offer, startBitrateKbps, place });
      if (outcome.outcome === "bad_stream_url") note(request, "bad_stream_url", null);
      isOpen = outcome.outcome === "opened";
      return outcome;
    } finally {
      if (!isOpen) place.release();
    }
  }

  return {
    limit: limits.request,
    async open(request) {
      // A full node spends as little as possible on each offer.
      const closed = publishing.closed(requestOf(request));
      if (closed !== null) return closed;
      const parsed = media().parseOffer(request.offer);
      if (parsed.outcome !== "refused") return await open(request, parsed.offer, START_BITRATE_KBPS);
      note(request, "offer_refused", parsed.detail);
      return parsed;
    },
    async invite({ audio, video, startBitrateKbps, ...target }) {
      const closed = publishing.closed(requestOf(target));
      if (closed !== null) return closed;
      const offer = media().ownOffer(audio, video);
      return await open(target, offer, Math.min(startBitrateKbps ?? START_BITRATE_KBPS, START_BITRATE_KBPS));
    },
    answer(id, answer) {
      const publish = find(id);
      return publish === undefined ? NOT_AWAITED : media().answerWhip(publish.clientId, answer);
    },
    state(id) {
      const publish = find(id);
      if (publish === undefined) return null;
      if (!isConnected(publish.clientId)) return "connecting";
      const own = media()
        .snapshot(publish.clientId)
        ?.upstreams.find(({ source }) => source === "own");
      return own === undefined || own.state === "sending" || own.lastError === null ? "connected" : "reconnecting";
    },
    onEnded(id, ended) {
      const publish = find(id);
      if (publish === undefined) ended();
      else publishing.onEnded(publish.clientId, ended);
    },
    iceServers: (user) => iceServersFor(deps.ice.servers, deps.ice.turnSecret, user, clock.now()),
    has: (session) => find(session) !== undefined,
    recentEnd: (session) => publishing.endings.recent(session),
    findEnd: (session) => publishing.endings.find(session),
    find(session) {
      const publish = find(session);
      if (publish === undefined) return null;
      const { clientId, organisationId, streamId } = publish.intent;
      return { clientId, organisation: organisationId, stream: streamId };
    },
    refuseFragment: (fragment) => media().refuseFragment(fragment),
    patch(id, fragment, matches) {
      const publish = find(id);
      if (publish === undefined) return { outcome: "unknown" };
      if (!matches(etags.get(publish) ?? "")) return { outcome: "precondition_failed" };
      const patched = media().patchWhip(publish.clientId, fragment);
      if (patched.outcome !== "restarted") return patched;
      const etag = newTag();
      etags.set(publish, etag);
      return { ...patched, etag };
    },
    sendMetadata(id, handler, payload) {
      const publish = find(id);
      return publish !== undefined && media().sendWhipData(publish.clientId, writeAmf0(handler, payload));
    },
    end: publishing.endWhip,
  };
}

/** The limit that was reached, as a reason. */
export const limitReason = ({ of }: LimitHit): RefusalReason => (of === "address" ? "too_many_requests" : "overloaded");

function requestOf({ streamName, address, via, mayMove = false }: WhipTarget): RefusedPublish {
  return { name: streamName, address, protocol: via ?? "whip", mayMove };
}

function newTag(): string {
  return `"${randomUUID()}"`;
}

/** Split at the first `?`; the bytes behind it are the custom arguments, untouched (P1). */
function splitName(streamName: Uint8Array): { name: Uint8Array; customArguments: Uint8Array | null } {
  const at = streamName.indexOf("?".charCodeAt(0));
  if (at === -1) return { name: streamName, customArguments: null };
  return { name: streamName.subarray(0, at), customArguments: streamName.subarray(at + 1) };
}
