// The typed face of the media core. Only this file imports #native; everyone else takes a `Media`.
// Shapes and names mirror crates/bridge; `null` is "none", `undefined` never crosses.

/** A broadcaster reached `publish` and waits. Answer with `allow` or `deny`; no answer in 10 s is a denial. */
export interface PublishRequested {
  readonly kind: "publish_requested";
  /** The core's own handle of this question; never shown to a customer. */
  readonly request: number;
  /** First segment of the RTMP path, `live`. */
  readonly app: string;
  /** Stream name as sent, without arguments. */
  readonly name: Uint8Array;
  /** Bytes after the first `?` of the name, untouched; null when there was no `?`. */
  readonly arguments: Uint8Array | null;
  /** IP address of the broadcaster. */
  readonly address: string;
}

/** Why a publish session ended: the stable codes of `EndReason` in crates/ingest/src/session.rs. */
export type EndReason =
  | "unpublished"
  | "broadcaster_left"
  | "silent"
  | "protocol_error"
  | "limit_exceeded"
  | "replaced"
  | "rejected_by_customer"
  | "kicked"
  | "upstream_refused"
  | "shutdown"
  | "internal_error";

/** Exactly one comes for every `allow`, whatever happened to the session. */
export interface PublishEnded {
  readonly kind: "publish_ended";
  readonly clientId: number;
  readonly reason: EndReason;
  /** Audio and video payload bytes from the broadcaster (no RTMP, no FLV bytes). */
  readonly bytesIn: number;
  /** The same measure, handed to all upstreams and players. */
  readonly bytesOut: number;
}

/** A push is about to dial; answer with `dial`. Asked again before every reconnect. */
export interface AddressWanted {
  readonly kind: "address_wanted";
  readonly push: number;
  readonly clientId: number;
  readonly host: string;
  readonly port: number;
}

export type MediaEvent = PublishRequested | PublishEnded | AddressWanted;

/** Counters of one running publish session. */
export interface PublishSnapshot {
  readonly clientId: number;
  /** Newest packet time in ms, 64-bit extended, non-negative. */
  readonly timestampMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Milliseconds since anything arrived from the broadcaster. */
  readonly silentMs: number;
  readonly subscribers: number;
  readonly droppedFrames: number;
}

/** The media core, already started. */
export interface Media {
  /** The port RTMP is served on (the configured one, or the free one that was found for 0). */
  readonly rtmpPort: number;
  /** Lets the publish go live under `clientId`, pushed to each of `upstreams` (complete RTMP URLs).
   *  `streamName` is the name players use. A `PublishEnded` follows in any case, also when the broadcaster is gone. */
  allow(request: number, publish: { readonly clientId: number; readonly upstreams: readonly string[] }): void;
  deny(request: number, refusal: { readonly code: "denied" | "bad_name"; readonly description: string }): void;
  /** Resolved addresses for a push; an empty list means "cannot be resolved, try later". */
  dial(push: number, addresses: readonly string[]): void;
  /** Ends a running publish; unknown client ids are ignored. */
  end(clientId: number, reason: "rejected_by_customer" | "kicked" | "replaced", description: string): void;
  /** null when the publish is not running. */
  snapshot(clientId: number): PublishSnapshot | null;
  /** Ends every session with reason `shutdown`; all `PublishEnded` have been delivered when it resolves. */
  stop(): Promise<void>;
}
