// WHIP publishes: from a validated request to an answer, or to our own offer (the deprecated v5 signalling), and the
// session ids by which they are patched and ended. Knows no HTTP type.
import { randomUUID } from "node:crypto";
import type { Media, OfferSummary, SdpRefused, WhipMedia, WhipOffer, WhipPatched } from "../../media.ts";
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
import { otherHostUrl, readStreamUrl, type StreamUrlRules } from "./stream-url.ts";
import {
  createWhipLimits,
  type HalfOpen,
  type LimitHit,
  type WhipLimitSettings,
  type WhipLimits,
} from "./whip-limits.ts";

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
  /** As of `RefusedPublish`. */
  readonly mayMove?: boolean;
}

export interface WhipRequest extends WhipTarget {
  /** SDP of the client. */
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

/** What came of a client's offer. */
export interface OfferOutcome {
  readonly outcome: WhipOutcome;
  /** Null when it was not read. */
  readonly offer: OfferSummary | null;
}

/** An entity tag is a strong one of RFC 9110 8.8.3, with its quotes. */
export type PatchOutcome =
  | { readonly outcome: "unknown" }
  | { readonly outcome: "precondition_failed" }
  | { readonly outcome: "restarted"; readonly fragment: string; readonly etag: string }
  | Exclude<WhipPatched, { outcome: "restarted" }>;

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

/** An offer of the client, or ours, which has no summary. */
interface Offered {
  readonly offer: WhipOffer;
  readonly summary: OfferSummary | null;
  readonly startBitrateKbps: number;
}

const NOT_AWAITED: SdpRefused = {
  outcome: "refused",
  code: "answer_not_awaited",
  status: 400,
  detail: "No offer is waiting for an answer",
};

export class Whip {
  readonly #deps: WhipDeps;
  readonly #limits: WhipLimits;
  /** Entity tags of their sessions. */
  readonly #etags = new WeakMap<RunningPublish, string>();

  constructor(deps: WhipDeps) {
    this.#deps = deps;
    const isConnected = (clientId: number) => this.#isConnected(clientId);
    this.#limits = createWhipLimits({ settings: deps.limits, clock: deps.clock, isConnected });
  }

  /** Null when the client may make a request. */
  limit(address: string, kind: "offer" | "session"): LimitHit | null {
    return this.#limits.request(address, kind);
  }

  /** Validates, asks, opens, in this order: nothing is created before the customer has allowed it (P5). */
  async open({ offer, ...request }: WhipRequest): Promise<OfferOutcome> {
    // A full node spends as little as possible on each offer.
    const closed = this.#deps.publishing.closed(requestOf(request));
    if (closed !== null) return { outcome: closed, offer: null };
    const { summary, result } = this.#media().parseOffer(offer);
    if (result.outcome === "refused") {
      this.#note(request, "offer_refused", result.detail);
      return { outcome: result, offer: summary };
    }
    const outcome = await this.#open(request, { offer: result.offer, summary, startBitrateKbps: START_BITRATE_KBPS });
    return { outcome, offer: summary };
  }

  /** The same with an offer of ours; pass the client's answer to `answer`. */
  async invite(invitation: WhipInvitation): Promise<Exclude<WhipOutcome, SdpRefused>> {
    const { audio, video, startBitrateKbps, ...target } = invitation;
    const closed = this.#deps.publishing.closed(requestOf(target));
    if (closed !== null) return closed;
    const offer = this.#media().ownOffer(audio, video);
    const bitrate = Math.min(startBitrateKbps ?? START_BITRATE_KBPS, START_BITRATE_KBPS);
    return await this.#open(target, { offer, summary: null, startBitrateKbps: bitrate });
  }

  /** Takes the client's answer to our offer; null when it is accepted. */
  answer(session: string, answer: string): SdpRefused | null {
    const publish = this.#find(session);
    return publish === undefined ? NOT_AWAITED : this.#media().answerWhip(publish.clientId, answer);
  }

  /** Null when it has ended or never existed. */
  state(session: string): WhipState | null {
    const publish = this.#find(session);
    if (publish === undefined) return null;
    if (!this.#isConnected(publish.clientId)) return "connecting";
    const own = this.#media()
      .snapshot(publish.clientId)
      ?.upstreams.find(({ source }) => source === "own");
    return own === undefined || own.state === "sending" || own.lastError === null ? "connected" : "reconnecting";
  }

  /** Calls `ended` once when the session has ended; immediately when it does not run. */
  onEnded(session: string, ended: () => void): void {
    const publish = this.#find(session);
    if (publish === undefined) ended();
    else this.#deps.publishing.onEnded(publish.clientId, ended);
  }

  /** The STUN and TURN servers, with credentials for one client. */
  iceServers(user: string): readonly IceServer[] {
    const { ice, clock } = this.#deps;
    return iceServersFor(ice.servers, ice.turnSecret, user, clock.now());
  }

  has(session: string): boolean {
    return this.#find(session) !== undefined;
  }

  /** Why a session of this node is over, or about to be; null: it runs, or is not known any more. */
  recentEnd(session: string): Ending | null {
    return this.#deps.publishing.endings.recent(session);
  }

  /** The same for a session that does not run here, also of another node; undefined: no session has such an id. */
  findEnd(session: string): Promise<Ending | null> | undefined {
    return this.#deps.publishing.endings.find(session);
  }

  /** The publish of a session; null when there is none (any more). */
  find(session: string): { readonly clientId: number; readonly organisation: string; readonly stream: string } | null {
    const publish = this.#find(session);
    if (publish === undefined) return null;
    const { clientId, organisationId, streamId } = publish.intent;
    return { clientId, organisation: organisationId, stream: streamId };
  }

  /** Why it is not a valid fragment; null when it is one. */
  refuseFragment(fragment: string): SdpRefused | null {
    return this.#media().refuseFragment(fragment);
  }

  /** A trickled fragment (P8). `matches` checks the session's entity tag before anything is done. */
  patch(session: string, fragment: string, matches: (etag: string) => boolean): PatchOutcome {
    const publish = this.#find(session);
    if (publish === undefined) return { outcome: "unknown" };
    if (!matches(this.#etags.get(publish) ?? "")) return { outcome: "precondition_failed" };
    const patched = this.#media().patchWhip(publish.clientId, fragment);
    if (patched.outcome !== "restarted") return patched;
    const etag = newTag();
    this.#etags.set(publish, etag);
    return { ...patched, etag };
  }

  /** Sends a data message to every subscriber of the publish; false when there is none (any more). */
  sendMetadata(session: string, handler: string, payload: { readonly [key: string]: Json }): boolean {
    const publish = this.#find(session);
    return publish !== undefined && this.#media().sendWhipData(publish.clientId, writeAmf0(handler, payload));
  }

  /** Ends a session; `isLeft`: treated as lost, so that another publish may take over its upstreams and players. False
   *  when there is none (any more). */
  end(session: string, isLeft = false): boolean {
    return this.#deps.publishing.endWhip(session, isLeft);
  }

  #media() {
    return this.#deps.media();
  }

  #find(session: string): RunningPublish | undefined {
    return this.#deps.publishing.ofSession(session);
  }

  #isConnected(clientId: number): boolean {
    return this.#media().isWhipConnected(clientId);
  }

  async #admit(request: WhipTarget, { offer, summary, startBitrateKbps }: Offered, place: HalfOpen): Promise<Opened> {
    const { name, customArguments } = splitName(request.streamName);
    const text = utf8(name) ?? "";
    const rules = this.#deps.rules();
    const ownHosts = [...rules.ownHosts, withoutBrackets(request.requestHost).toLowerCase()];
    const target = readStreamUrl(request.streamUrl, text, { ...rules, ownHosts });
    if (target.kind === "refused") return { outcome: "bad_stream_url" };
    let ownUpstream: string | null = null;
    if (target.kind === "other_host") {
      const argumentsText = customArguments === null ? null : utf8(customArguments);
      // A URL could only carry them altered (W2).
      if (customArguments !== null && argumentsText === null) {
        const refusal = denied("malformed_name", "Custom arguments are not UTF-8");
        this.#note(request, refusal.cause, refusal.description);
        return refusal;
      }
      // A host that cannot be dialled gets the same refusal as one that is not allowed.
      const owner = (await this.#deps.organisationOf(text)) ?? NOBODY;
      const addresses = await resolveUpstream(target.host, {
        exempt: this.#deps.dev,
        owner,
        resolve: this.#deps.resolve,
      });
      if (addresses === null || addresses.length === 0) return { outcome: "bad_stream_url" };
      ownUpstream = otherHostUrl(target, text, argumentsText);
    }
    const { address, claims, trace, via, mayMove = false } = request;
    const random = randomUUID();
    const session = this.#deps.sessionId?.(random) ?? random;
    const about = {
      address,
      claims,
      mayMove,
      ...(trace && { trace }),
      ...(via && { via }),
      ...(summary && { offer: summary }),
    };
    const asked = { app: APP, name, arguments: customArguments, session, ...about };
    const admission = await this.#deps.publishing.admit({ ...asked, protocol: "whip" });
    if (admission.outcome === "denied") return admission;
    const { clientId, intent, upstreams, maxBitrateKbps } = admission.publish;
    const started = await admission.start((hold) =>
      this.#media().openWhip({
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
    const publish = this.#find(session);
    if (publish !== undefined) this.#etags.set(publish, etag);
    place.opened(clientId);
    this.#deps.publishing.onEnded(clientId, place.release);
    const links = iceServerLinks(this.#deps.ice.servers, this.#deps.ice.turnSecret, clientId, this.#deps.clock.now());
    const { organisationId: organisation, streamId: stream } = intent;
    return { outcome: "opened", session, clientId, organisation, stream, etag, answer: started.answer, links };
  }

  /** Notes what is refused here; publishing notes what it denies. */
  #note(request: WhipTarget, reason: RefusalReason, description: string | null): void {
    this.#deps.refusals.note({ ...requestOf(request), request: "publish", reason, description });
  }

  async #open(request: WhipTarget, offered: Offered): Promise<Opened> {
    const place = this.#limits.halfOpen(request.address);
    if ("of" in place) {
      this.#note(request, limitReason(place), null);
      return { outcome: "limited", ...place };
    }
    let isOpen = false;
    try {
      const outcome = await this.#admit(request, offered, place);
      if (outcome.outcome === "bad_stream_url") this.#note(request, "bad_stream_url", null);
      isOpen = outcome.outcome === "opened";
      return outcome;
    } finally {
      if (!isOpen) place.release();
    }
  }
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
