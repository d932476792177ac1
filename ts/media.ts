// The typed interface of the media core. Only this file imports #native; all other modules use `Media`. Shapes and
// names mirror crates/bridge; `null` means none.
import {
  ownOffer,
  parseOffer,
  replayCapture as playCapture,
  refuseFragment,
  type SdpRefusal,
  startMedia as startCore,
  WhipOffer,
  type WhipReport,
} from "#native";
import { type AcceptingMedia, type AcceptingOptions, acceptingOf, acceptingOptions } from "./media/accepting.ts";
import { type CaptureMedia, captureMedia } from "./media/captures.ts";
import type { EndRequest, UpstreamSource } from "./media/codes.ts";
import { type MediaEvent, readEvent } from "./media/events.ts";
import { type Hold, type HoldMedia, holdMedia, holdOptions, NO_HOLD } from "./media/hold.ts";
import { type PlayerStatus, type PlayMedia, readPull } from "./media/plays.ts";
import type { PreviewMedia, PreviewSource } from "./media/preview.ts";
import { type Refusal, refuse } from "./media/refusal.ts";
import { type ReplayOutcome, readReplay } from "./media/replays.ts";
import { type PublishSnapshot, readIrregularity, readSnapshot } from "./media/snapshot.ts";
import type { WorkerMedia } from "./media/workers.ts";
import { reasonOf } from "./reason.ts";

/** How to start the media core. */
export interface MediaOptions extends AcceptingOptions {
  /** An IP address. */
  readonly rtmpHost: string;
  /** 0 takes any free port; null serves RTMP over TLS alone. */
  readonly rtmpPort: number | null;
  /** Addresses and networks of the proxies that send a PROXY protocol header. */
  readonly rtmpTrustedProxies: readonly string[];
  /** RTMP over TLS on the same host; null without a certificate. */
  readonly rtmpTls: { readonly port: number; readonly cert: string; readonly key: string } | null;
  /** Authorities for upstreams' certificates in addition to the system's, PEM; null for none. */
  readonly upstreamCa: string | null;
  /** An IP address. */
  readonly mediaHost: string;
  /** UDP port of the first media worker; 0 takes free ones. */
  readonly mediaPort: number;
  /** IP addresses for the candidates of answers, the preferred first. */
  readonly publicAddresses: readonly string[];
  /** Number of media workers. */
  readonly workers: number;
  /** Threads that transcode Opus to AAC. */
  readonly audioWorkers: number;
  /** Whether players that join late start with the cached GOP. */
  readonly gopCache: boolean;
  /** Whether pushes without audio get silence (R5). */
  readonly pushSilence: boolean;
  readonly captures: boolean; // whether publishes may be captured
  /** RTMP connections in total, upstreams included; 0: as many as the process's file descriptors allow. */
  readonly rtmpConnections: number;
  /** RTMP connections from one address; 0 is no limit. */
  readonly rtmpConnectionsPerAddress: number;
}

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

/** An upstream of a publish. */
export interface Upstream {
  /** Unique within the publish, and not secret. */
  readonly id: string;
  /** A complete RTMP URL: it may contain secrets. */
  readonly url: string;
  readonly source: UpstreamSource;
}

/** An allowed WHIP publish. */
export interface WhipPublish {
  readonly clientId: number;
  /** Stream name without arguments. */
  readonly name: string;
  readonly offer: WhipOffer;
  readonly upstreams: readonly Upstream[];
  /** The publish's own stream_url as a complete RTMP URL; null when that is this service. A refusal there, before it
   *  was ever accepted, ends the publish (R4). */
  readonly ownUpstream: string | null;
  readonly stereo: boolean;
  readonly startBitrateKbps: number;
  /** 0 means no limit. */
  readonly maxBitrateKbps: number;
  /** AAC bitrate, bit/s, mono or stereo; null for the default, which is halved for mono. */
  readonly audioBitrate: number | null;
  /** An AMF0 object added to the connect command to `ownUpstream`; null for none. */
  readonly connectInfo: Uint8Array | null;
  /** By default nothing is held. */
  readonly hold?: Hold;
}

/** Diagnostics of a running WHIP publish; members as in crates/bridge/src/whip.rs, `undefined` means none. */
export type WhipDiagnostics = WhipReport;

/** The result of a trickled fragment. */
export type WhipPatched =
  | { readonly outcome: "added" }
  | { readonly outcome: "restarted"; readonly fragment: string }
  | { readonly outcome: "refused"; readonly code: string; readonly status: number; readonly detail: string };

/** The WHIP functions of the media core. */
export interface WhipMedia {
  /** Parses and validates a WHIP offer, before the customer is asked. */
  parseOffer(offer: string): ParsedOffer;
  /** Creates an offer to receive audio, video or both; throws for neither. */
  ownOffer(audio: boolean, video: boolean): WhipOffer;
  /** Takes a client's answer to our offer, once; null when it is accepted. */
  answerWhip(clientId: number, answer: string): SdpRefused | null;
  /** Why a trickled fragment is invalid, independent of any session; null when it is valid. */
  refuseFragment(fragment: string): SdpRefused | null;
  /** Opens a WHIP publish; returns the answer, or our offer. A `PublishEnded` always follows, even if it throws. */
  openWhip(publish: WhipPublish): string;
  /** Applies a trickled fragment to a running publish: more candidates, or an ICE restart. */
  patchWhip(clientId: number, fragment: string): WhipPatched;
  /** Sends AMF0 values, the handler's name first, to every subscriber of the publish; false when it does not run. */
  sendWhipData(clientId: number, data: Uint8Array): boolean;
  /** Asks the sender to stay below `kbps` kbit/s, 0 for no limit; false when it does not run. */
  limitWhipBitrate(clientId: number, kbps: number): boolean;
  /** Whether ICE and DTLS are complete; false when it does not run. */
  isWhipConnected(clientId: number): boolean;
  /** At most two seconds old; null in the publish's first second, and for protocols other than WHIP. */
  whipDiagnostics(clientId: number): WhipDiagnostics | null;
}

export type { PublishSnapshot, PublishTracks, UpstreamStatus } from "./media/snapshot.ts";
/** A parsed and validated offer, or one of ours: the input of `openWhip`. */
export type { PlayerStatus, WhipOffer };

/** Why an offer or a fragment is refused; `detail` is for people and never repeats the SDP. */
export interface SdpRefused {
  readonly outcome: "refused";
  readonly code: string;
  readonly status: 400 | 422;
  readonly detail: string;
}

export type ParsedOffer = { readonly outcome: "parsed"; readonly offer: WhipOffer } | SdpRefused;

/** The running media core. */
export interface Media extends WhipMedia, PlayMedia, PreviewMedia, HoldMedia, WorkerMedia, CaptureMedia {
  /** The port of RTMP (the configured one, or the free one chosen for 0); null if it is off. */
  readonly rtmpPort: number | null;
  /** The port of RTMP over TLS; null without one. */
  readonly rtmpTlsPort: number | null;
  readonly accepting: AcceptingMedia;
  /** New connections use this certificate. Throws when it cannot be used. */
  setCertificate(certificate: { readonly cert: string; readonly key: string }): void;
  /** The UDP ports, one per media worker. */
  readonly mediaPorts: readonly number[];
  /** Transcoders running at present. */
  transcoders(): number;
  /** Transcoders that failed, since the start. */
  failedTranscoders(): number;
  /** What was irregular about publishers since the process started; only kinds that have occurred. */
  irregularities(): PublishSnapshot["irregularities"];
  /** RTMP connections closed immediately because a limit was reached, and upstreams not dialled for the same
   *  reason, since the start. */
  refusedConnections(): number;
  /** Datagrams that the kernel dropped on the media ports because they were not read in time; null where the system
   *  does not report them. */
  kernelDrops(): number | null;
  /** Bytes that the kernel buffers on each media port when that is less than `RECEIVE_BUFFER_BYTES`; else null. */
  readonly smallReceiveBuffer: number | null;
  /** Lets the publish go live under `clientId`, pushed to each of `upstreams`; by default nothing of it is held. A
   *  `PublishEnded` follows in any case, also when the broadcaster is gone. */
  allow(
    request: number,
    publish: { readonly clientId: number; readonly upstreams: readonly Upstream[]; readonly hold?: Hold },
  ): void;
  /** Refuses a publish or a play. */
  deny(request: number, refusal: Refusal): void;
  /** Resolved addresses for a push; an empty list means "cannot be resolved, try later". */
  dial(push: number, addresses: readonly string[]): void;
  /** Ends a running publish; unknown client ids are ignored. */
  end(clientId: number, reason: EndRequest, description: string): void;
  /** Pushes a running publish to one more upstream; `added` also when it already has it. */
  addUpstream(clientId: number, upstream: Upstream): "added" | "not_running" | "too_many";
  /** Removes an upstream from a running publish. False when it has none with that id. */
  removeUpstream(clientId: number, id: string): boolean;
  /** null when the publish is not running. */
  snapshot(clientId: number): PublishSnapshot | null;
  /** The players of a running publish, oldest first, at most a thousand; empty when it does not run. */
  players(clientId: number): readonly PlayerStatus[];
  /** Ends every session with reason `shutdown`; resolves after all `PublishEnded` have been delivered. */
  stop(): Promise<void>;
}

/** Replays a capture; `flv`: a file for its frames. Throws when it is invalid, or a file cannot be used. */
export const replayCapture = (path: string, flv: string | null): ReplayOutcome => readReplay(playCapture(path, flv));

/** True when the core loads and refuses an empty offer: a self-test before a start. */
export function refusesEmptyOffer(): boolean {
  return !(parseOffer("") instanceof WhipOffer);
}

/** Starts the media core. `handle` gets every event, in order, on the JavaScript thread; its exceptions go to `failed`.
 *  @throws {MediaStartError} */
export function startMedia(
  options: MediaOptions,
  handle: (event: MediaEvent) => void,
  failed: (error: unknown) => void,
): Media {
  const deliver = (): void => {
    for (const item of core.drain()) {
      try {
        handle(readEvent(item));
      } catch (error) {
        failed(error);
      }
    }
  };
  const core = open(options, deliver);
  return {
    rtmpPort: core.rtmpPort ?? null,
    rtmpTlsPort: core.rtmpTlsPort,
    setCertificate: ({ cert, key }) => core.setCertificate(cert, key),
    mediaPorts: core.mediaPorts,
    accepting: acceptingOf(core),
    parseOffer(text) {
      const offer = parseOffer(text);
      return offer instanceof WhipOffer ? { outcome: "parsed", offer } : refused(offer);
    },
    ownOffer,
    answerWhip(clientId, answer) {
      const refusal = core.answerWhip(clientId, answer);
      return refusal === null ? null : refused(refusal);
    },
    refuseFragment(fragment) {
      const refusal = refuseFragment(fragment);
      return refusal === null ? null : refused(refusal);
    },
    patchWhip(clientId, fragment) {
      const { code, status, detail, fragment: ours } = core.patchWhip(clientId, fragment);
      if (code !== undefined) return { outcome: "refused", code, status: status ?? 500, detail: detail ?? "" };
      return ours === undefined ? { outcome: "added" } : { outcome: "restarted", fragment: ours };
    },
    sendWhipData: (clientId, data) => core.sendWhipData(clientId, Buffer.from(data)),
    limitWhipBitrate: (clientId, kbps) => core.limitWhipBitrate(clientId, kbps),
    isWhipConnected: (clientId) => core.isWhipConnected(clientId),
    whipDiagnostics: (clientId) => core.whipDiagnostics(clientId),
    openWhip: ({ name, offer, upstreams, ownUpstream, connectInfo, audioBitrate, hold = NO_HOLD, ...publish }) =>
      core.openWhip(offer, {
        ...publish,
        hold: holdOptions(hold),
        ...(audioBitrate === null ? {} : { audioBitrate }),
        ...(connectInfo === null ? {} : { connectInfo: Buffer.from(connectInfo) }),
        name: Buffer.from(name),
        upstreams:
          ownUpstream === null ? [...upstreams] : [...upstreams, { id: "own", url: ownUpstream, source: "own" }],
      }),
    transcoders: () => core.transcoders(),
    failedTranscoders: () => core.failedTranscoders(),
    irregularities: () => core.irregularities().map(readIrregularity),
    refusedConnections: () => core.refusedConnections(),
    kernelDrops: () => core.kernelDrops(),
    smallReceiveBuffer: core.smallReceiveBuffer,
    workerStatus: () => core.workerStatus(),
    connections: () => core.connections(),
    allow: (request, { clientId, upstreams, hold = NO_HOLD }) =>
      core.allow(request, clientId, [...upstreams], holdOptions(hold)),
    ...holdMedia(core),
    ...captureMedia(core),
    allowPlay: (request, { counted }) => core.allowPlay(request, counted),
    pull: (request, source) => core.pull(request, source),
    dialPull: (pull, source) => core.dialPull(pull, source),
    pulls: () => core.pulls().map(readPull),
    deny: (request, refusal) => refuse(core, request, refusal),
    dial: (push, addresses) => core.dial(push, [...addresses]),
    end: (clientId, reason, description) => core.end(clientId, reason, description),
    // The bridge returns exactly these outcomes.
    addUpstream: (clientId, upstream) => core.addUpstream(clientId, upstream) as ReturnType<Media["addUpstream"]>,
    removeUpstream: (clientId, id) => core.removeUpstream(clientId, id),
    players: (clientId) => core.players(clientId),
    // Each buffer is exactly as long as its content and not shared.
    openPreview: (clientId, wake) => core.openPreview(clientId, wake) as PreviewSource | null,
    snapshot(clientId) {
      const counters = core.snapshot(clientId);
      return counters === null ? null : readSnapshot(counters);
    },
    async stop() {
      await core.stop();
      deliver();
    },
  };
}

function refused({ code, status, detail }: SdpRefusal): SdpRefused {
  // The core's table of refusals has exactly these two.
  return { outcome: "refused", code, status: status === 400 ? 400 : 422, detail };
}

function open(options: MediaOptions, wake: () => void): ReturnType<typeof startCore> {
  try {
    const { rtmpPort, rtmpTls, upstreamCa, rtmpSockets: _, ...plain } = options;
    return startCore(
      {
        ...plain,
        ...acceptingOptions(options),
        ...(rtmpPort !== null && { rtmpPort }),
        rtmpTrustedProxies: [...options.rtmpTrustedProxies],
        publicAddresses: [...options.publicAddresses],
        ...(rtmpTls && { rtmpTlsPort: rtmpTls.port, rtmpTlsCert: rtmpTls.cert, rtmpTlsKey: rtmpTls.key }),
        ...(upstreamCa !== null && { upstreamCa }),
      },
      wake,
    );
  } catch (error) {
    const { code: said } = error as { readonly code?: unknown };
    throw new MediaStartError(START_FAULTS.find((code) => code === said) ?? "io", error);
  }
}
