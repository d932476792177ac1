// The typed interface of the media core. Only this folder imports #native; all other modules use `Media`. What crosses is
// described in crates/bridge; `null` means none.
import {
  type MediaOptions as CoreOptions,
  type MediaCore,
  type MediaEvent,
  type OfferRead,
  ownOffer,
  type PublishSnapshot,
  parseOffer,
  refuseFragment,
  replayCapture,
  startMedia as startCore,
  type Upstream,
  type WhipOffer,
  type WhipOptions,
} from "#native";
import type { AcceptingMedia, AcceptingOptions } from "./media/accepting.ts";
import type { CaptureMedia } from "./media/captures.ts";
import { type Hold, type HoldMedia, NO_HOLD } from "./media/hold.ts";
import type { PlayMedia } from "./media/plays.ts";
import type { PreviewMedia } from "./media/preview.ts";
import { type Refusal, refuse } from "./media/refusal.ts";
import type { WorkerMedia } from "./media/workers.ts";
import { reasonOf } from "./reason.ts";

export type {
  MediaSummary,
  OfferRead,
  OfferSummary,
  PlayerStatus,
  PublishTracks,
  SdpRefused,
  UpstreamStatus,
  WhipPatched,
  WhipReport as WhipDiagnostics,
} from "#native";
/** `replayCapture` needs no running core. `WhipOffer`: the input of `openWhip`. */
export { type PublishSnapshot, replayCapture, type Upstream, type WhipOffer };

/** How to start the media core. */
export type MediaOptions = Omit<CoreOptions, keyof AcceptingOptions> & AcceptingOptions;

/** Why the media core could not start, by the names in crates/ingest; `io` for any error of the system. */
const START_FAULTS = ["rtmp_port_taken", "rtmp_tls_port_taken", "media_port_taken", "tls", "identity", "io"] as const;

/** The media core could not start. */
export class MediaStartError extends Error {
  readonly code: (typeof START_FAULTS)[number];
  constructor(code: MediaStartError["code"], cause: unknown) {
    super(reasonOf(cause), { cause });
    this.code = code;
  }
}

/** An allowed WHIP publish. */
export interface WhipPublish extends Omit<WhipOptions, "hold"> {
  readonly offer: WhipOffer;
  /** The publish's own stream_url as a complete RTMP URL; null when that is this service. A refusal there, before it
   *  was ever accepted, ends the publish (R4). */
  readonly ownUpstream: string | null;
  /** By default nothing is held. */
  readonly hold?: Hold;
}

/** The WHIP functions of the media core. */
export interface WhipMedia
  extends Pick<
    MediaCore,
    "answerWhip" | "patchWhip" | "sendWhipData" | "limitWhipBitrate" | "isWhipConnected" | "whipDiagnostics"
  > {
  parseOffer(offer: string): OfferRead;
  ownOffer: typeof ownOffer;
  refuseFragment: typeof refuseFragment;
  /** Opens a WHIP publish; returns the answer, or our offer. A `PublishEnded` always follows, even if it throws. */
  openWhip(publish: WhipPublish): string;
}

/** What the core counts, and what it does as it is told. */
type Served =
  | "rtmpPort"
  | "rtmpTlsPort"
  | "mediaPorts"
  | "smallReceiveBuffer"
  | "transcoders"
  | "failedTranscoders"
  | "irregularities"
  | "refusedConnections"
  | "kernelDrops"
  | "dial"
  | "forbid"
  | "orderPush"
  | "testUpstream"
  | "end"
  | "addUpstream"
  | "removeUpstream"
  | "snapshot"
  | "players";

/** The running media core. */
export interface Media
  extends Pick<MediaCore, Served>,
    WhipMedia,
    PlayMedia,
    PreviewMedia,
    HoldMedia,
    WorkerMedia,
    CaptureMedia {
  readonly accepting: AcceptingMedia;
  /** New connections use this certificate. Throws when it cannot be used. */
  setCertificate(certificate: { readonly cert: string; readonly key: string }): void;
  /** Lets the publish go live under `clientId`, pushed to each of `upstreams`; by default nothing of it is held. A
   *  `PublishEnded` follows in any case, also when the broadcaster is gone. */
  allow(
    request: number,
    publish: { readonly clientId: number; readonly upstreams: readonly Upstream[]; readonly hold?: Hold },
  ): void;
  /** Refuses a publish or a play. */
  deny(request: number, refusal: Refusal): void;
  /** Ends every session with reason `shutdown`; resolves after all `PublishEnded` have been delivered. */
  stop(): Promise<void>;
}

/** True when the core loads and refuses an empty offer: a self-test before a start. */
export function refusesEmptyOffer(): boolean {
  return parseOffer("").result.outcome === "refused";
}

/** Starts the media core. `handle` gets every event, in order, on the JavaScript thread; its exceptions go to `failed`.
 *  @throws {MediaStartError} */
export function startMedia(
  options: MediaOptions,
  handle: (event: MediaEvent) => void,
  failed: (error: unknown) => void,
): Media {
  const deliver = (): void => {
    for (const event of core.drain()) {
      try {
        handle(event);
      } catch (error) {
        failed(error);
      }
    }
  };
  const core = open(options, deliver);
  return {
    rtmpPort: core.rtmpPort,
    rtmpTlsPort: core.rtmpTlsPort,
    mediaPorts: core.mediaPorts,
    smallReceiveBuffer: core.smallReceiveBuffer,
    accepting: core,
    setCertificate: ({ cert, key }) => core.setCertificate(cert, key),
    parseOffer,
    ownOffer,
    refuseFragment,
    openWhip: ({ offer, ownUpstream, upstreams, hold = NO_HOLD, ...publish }) =>
      core.openWhip(offer, {
        ...publish,
        hold,
        upstreams: ownUpstream === null ? upstreams : [...upstreams, { id: "own", url: ownUpstream, source: "own" }],
      }),
    answerWhip: (clientId, answer) => core.answerWhip(clientId, answer),
    patchWhip: (clientId, fragment) => core.patchWhip(clientId, fragment),
    sendWhipData: (clientId, data) => core.sendWhipData(clientId, data),
    limitWhipBitrate: (clientId, kbps) => core.limitWhipBitrate(clientId, kbps),
    isWhipConnected: (clientId) => core.isWhipConnected(clientId),
    whipDiagnostics: (clientId) => core.whipDiagnostics(clientId),
    transcoders: () => core.transcoders(),
    failedTranscoders: () => core.failedTranscoders(),
    irregularities: () => core.irregularities(),
    refusedConnections: () => core.refusedConnections(),
    kernelDrops: () => core.kernelDrops(),
    workerStatus: () => core.workerStatus(),
    connections: () => core.connections(),
    allow: (request, { clientId, upstreams, hold = NO_HOLD }) => core.allow(request, clientId, upstreams, hold),
    deny: (request, refusal) => refuse(core, request, refusal),
    dial: (push, addresses) => core.dial(push, addresses),
    forbid: (push) => core.forbid(push),
    orderPush: (clientId, id, order) => core.orderPush(clientId, id, order),
    testUpstream: (test, upstream) => core.testUpstream(test, upstream),
    end: (clientId, reason, description) => core.end(clientId, reason, description),
    switchTo: (clientId) => core.switchTo(clientId),
    release: (clientId) => core.release(clientId),
    capture: (clientId, what) => core.capture(clientId, what),
    captureNext: (clientId, what) => core.captureNext(clientId, what),
    allowPlay: (request, { counted }) => core.allowPlay(request, counted),
    pull: (request, source) => core.pull(request, source),
    dialPull: (pull, source) => core.dialPull(pull, source),
    pulls: () => core.pulls(),
    addUpstream: (clientId, upstream) => core.addUpstream(clientId, upstream),
    removeUpstream: (clientId, id) => core.removeUpstream(clientId, id),
    players: (clientId) => core.players(clientId),
    openPreview: (clientId, wake) => core.openPreview(clientId, wake),
    snapshot: (clientId) => core.snapshot(clientId),
    async stop() {
      await core.stop();
      deliver();
    },
  };
}

function open({ rtmpSockets, accepts = true, ...options }: MediaOptions, wake: () => void): MediaCore {
  try {
    return startCore({ ...options, accepts, rtmpSockets: { plain: null, tls: null, ...rtmpSockets } }, wake);
  } catch (error) {
    const said = typeof error === "object" && error !== null && "code" in error ? error.code : "io";
    throw new MediaStartError(START_FAULTS.find((code) => code === said) ?? "io", error);
  }
}
