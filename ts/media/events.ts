// The events of the media core, and how they are read from its mailbox. Shapes and names mirror
// crates/ingest/src/publish/mailbox.rs; `null` means none.
import type { MailboxItem } from "#native";
import type { EndReason, OnAirCause, PullEndReason, UpstreamSource } from "./codes.ts";

/** A broadcaster has sent `publish` and waits. Answer with `allow` or `deny`; no answer in 12 s is a denial. */
export interface PublishRequested {
  readonly kind: "publish_requested";
  /** The core's own handle of this request; never shown to a customer. */
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

/** Sent exactly once for every `allow`, whatever happens to the session. */
export interface PublishEnded {
  readonly kind: "publish_ended";
  readonly clientId: number;
  readonly reason: EndReason;
  /** Audio and video payload bytes from the broadcaster (no RTMP, no FLV bytes). */
  readonly bytesIn: number;
  /** Audio and video payload bytes sent to all upstreams and players. */
  readonly bytesOut: number;
  /** Video frames from the broadcaster. */
  readonly videoFrames: number;
  /** Frames that slow upstreams and players lost, summed over them. */
  readonly droppedFrames: number;
  /** Its publisher was lost, and its upstreams and players are held: a `HoldEnded` follows. */
  readonly held: boolean;
}

/** The upstreams and players of a lost publish are no longer held. */
export interface HoldEnded {
  readonly kind: "hold_ended";
  readonly clientId: number;
  /** The publish that takes them over; null: they have ended. */
  readonly successor: number | null;
}

/** A publish has gone on air, so that upstreams and players receive it, or has gone on standby. */
export interface OnAirChanged {
  readonly kind: "on_air_changed";
  readonly clientId: number;
  readonly onAir: boolean;
  /** The other publish of its name: the one it took over from, or the one on air; null for none. */
  readonly other: number | null;
  readonly cause: OnAirCause;
}

/** A push is about to connect; answer with `dial`. Sent again before every reconnect. */
export interface AddressWanted {
  readonly kind: "address_wanted";
  readonly push: number;
  readonly clientId: number;
  readonly host: string;
  readonly port: number;
  /** Who configured the upstream, which determines the addresses it may use. */
  readonly source: UpstreamSource;
}

/** A change of a push, for the operator. */
export interface UpstreamChanged {
  readonly kind: "upstream_changed";
  readonly clientId: number;
  /** The id given when the upstream was added. */
  readonly upstreamId: string;
  /** Host and port; the rest of the URL is secret. */
  readonly upstream: string;
  readonly sending: boolean;
  /** Why it stopped; empty while it is sending. */
  readonly detail: string;
}

/** A player has requested a stream and waits. Answer with `allowPlay`, `pull` or `deny`; no answer in 12 s is a
 *  refusal. */
export interface PlayRequested {
  readonly kind: "play_requested";
  /** The core's own handle of this request, and afterwards of the player. */
  readonly request: number;
  /** Stream name as sent, without arguments. */
  readonly name: Uint8Array;
  /** The publish of this node that is live under that name; null when there is none. */
  readonly clientId: number | null;
  /** Bytes after the first `?` of the name, untouched; null when there was no `?`. */
  readonly arguments: Uint8Array | null;
  /** IP address of the player. */
  readonly address: string;
}

/** Sent exactly once for every `allowPlay`, whatever happens to the player. */
export interface PlayEnded {
  readonly kind: "play_ended";
  /** Handle of its request. */
  readonly player: number;
  /** Audio and video payload bytes sent to it. */
  readonly bytesOut: number;
  /** Frames dropped because it was slow. */
  readonly droppedFrames: number;
}

/** The connection of a pull was lost: answer with `dialPull` and the present source of its stream. */
export interface SourceWanted {
  readonly kind: "source_wanted";
  /** The core's own handle of the pull. */
  readonly pull: number;
  /** Stream name without arguments. */
  readonly name: Uint8Array;
  /** The pulled publish; another publish of that name is another stream. */
  readonly clientId: number;
}

/** Sent exactly once for every pull that was started. */
export interface PullEnded {
  readonly kind: "pull_ended";
  /** The publish at the source. */
  readonly clientId: number;
  /** Stream name without arguments. */
  readonly name: Uint8Array;
  readonly reason: PullEndReason;
  /** The reason in words; may be empty. */
  readonly detail: string;
  /** Audio and video payload bytes from the source. */
  readonly bytesIn: number;
  /** Audio and video payload bytes sent to the players. */
  readonly bytesOut: number;
}

/** An RTMP connection was refused before it requested a publish or a play. */
export interface ConnectionRefused {
  readonly kind: "connection_refused";
  /** IP address of the peer. */
  readonly address: string;
  /** Stable code of the reason: the codes of `Error` in crates/rtmp/src/error.rs, `app`, or `tls_…` of a failed
   *  handshake (crates/ingest/src/reactor/tls.rs). */
  readonly code: string;
  /** The reason in words. */
  readonly detail: string;
}

export type MediaEvent =
  | PublishRequested
  | PublishEnded
  | HoldEnded
  | OnAirChanged
  | PlayRequested
  | PlayEnded
  | SourceWanted
  | PullEnded
  | ConnectionRefused
  | AddressWanted
  | UpstreamChanged;

/** An item of the core's mailbox. */
export function readEvent(item: MailboxItem): MediaEvent {
  switch (item.kind) {
    case "publish_requested":
      return {
        kind: item.kind,
        request: required(item.request),
        app: required(item.app),
        name: required(item.name),
        arguments: item.arguments ?? null,
        address: required(item.address),
      };
    case "publish_ended":
      return {
        kind: item.kind,
        clientId: required(item.clientId),
        // The core's table of end reasons has exactly these codes.
        reason: required(item.reason) as EndReason,
        bytesIn: required(item.bytesIn),
        bytesOut: required(item.bytesOut),
        videoFrames: required(item.videoFrames),
        droppedFrames: required(item.droppedFrames),
        held: required(item.held),
      };
    case "hold_ended":
      return { kind: item.kind, clientId: required(item.clientId), successor: item.successor ?? null };
    case "on_air_changed":
      return {
        kind: item.kind,
        clientId: required(item.clientId),
        onAir: required(item.onAir),
        other: item.other ?? null,
        // The core's table of causes has exactly these codes.
        cause: required(item.cause) as OnAirCause,
      };
    case "play_requested":
      return {
        kind: item.kind,
        request: required(item.request),
        name: required(item.name),
        clientId: item.clientId ?? null,
        arguments: item.arguments ?? null,
        address: required(item.address),
      };
    case "play_ended":
      return {
        kind: item.kind,
        player: required(item.player),
        bytesOut: required(item.bytesOut),
        droppedFrames: required(item.droppedFrames),
      };
    case "source_wanted":
      return {
        kind: item.kind,
        pull: required(item.pull),
        name: required(item.name),
        clientId: required(item.clientId),
      };
    case "pull_ended":
      return {
        kind: item.kind,
        clientId: required(item.clientId),
        name: required(item.name),
        // The core's table of pull ends has exactly these codes.
        reason: required(item.reason) as PullEndReason,
        detail: required(item.detail),
        bytesIn: required(item.bytesIn),
        bytesOut: required(item.bytesOut),
      };
    case "connection_refused":
      return {
        kind: item.kind,
        address: required(item.address),
        code: required(item.code),
        detail: required(item.detail),
      };
    case "address_wanted":
      return {
        kind: item.kind,
        push: required(item.push),
        clientId: required(item.clientId),
        host: required(item.host),
        port: required(item.port),
        source: required(item.source) as UpstreamSource,
      };
    case "upstream_changed":
      return {
        kind: item.kind,
        clientId: required(item.clientId),
        upstreamId: required(item.upstreamId),
        upstream: required(item.upstream),
        sending: required(item.sending),
        detail: required(item.detail),
      };
    default:
      throw new Error(`the media core says ${item.kind}, which this gateway does not know`);
  }
}

/** A member that is always present for its kind. */
function required<T>(member: T | undefined): T {
  if (member === undefined) throw new Error("a member of a media event is missing");
  return member;
}
