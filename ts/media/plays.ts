// Players, and pulls: streams published on another node of the service and pulled from there for the players of this
// one. Shapes and names mirror crates/bridge/src/pull.rs.
import type { PullState } from "./codes.ts";

/** Where a stream is pulled from. */
export interface PullSource {
  /** The publish at the source. */
  readonly clientId: number;
  /** A complete RTMP(S) URL: it may contain secrets. */
  readonly url: string;
  /** The IP address to connect to. */
  readonly address: string;
}

/** The state of one pull. */
export interface PullStatus {
  /** The publish at the source. */
  readonly clientId: number;
  /** Stream name without arguments. */
  readonly name: string;
  /** `rtmp[s]://host:port/app`: without name and arguments. */
  readonly url: string;
  /** Players that read it here. */
  readonly players: number;
  /** Audio and video payload bytes from the source. */
  readonly bytesIn: number;
  /** Audio and video payload bytes sent to the players. */
  readonly bytesOut: number;
  /** When it began, epoch ms. */
  readonly since: number;
  /** `connecting`: until the first frame; `reconnecting`: its connection was lost, and its players wait. */
  readonly state: PullState;
}

/** The player functions of the media core. */
export interface PlayMedia {
  /** Lets a player read a local publish. Another node of the service is not counted: neither as a player nor with its
   *  bytes. A `PlayEnded` follows in any case, also when the player is gone. */
  allowPlay(request: number, options: { readonly counted: boolean }): void;
  /** Lets a player read a stream of another node: through the running pull of its name, else a new one. The player gets
   *  its success response once media arrives; after 5 s without any, that there is no such stream. A `PlayEnded`
   *  follows in any case, and one `PullEnded` for each pull. Throws when the URL or the address is invalid. */
  pull(request: number, source: PullSource): void;
  /** The present source of a pull that lost its connection; null: none, and the pull ends. */
  dialPull(pull: number, source: PullSource | null): void;
  /** The running pulls, by name. */
  pulls(): readonly PullStatus[];
}

/** A pull with its counters, as the core returns it. */
interface PullCounters extends Omit<PullStatus, "name" | "state"> {
  readonly name: Uint8Array;
  readonly state: string;
}

export function readPull({ name, state, ...counters }: PullCounters): PullStatus {
  // The core's table of states has exactly these.
  return { ...counters, name: Buffer.from(name).toString(), state: state as PullState };
}

/** The state of one player of a running publish. */
export interface PlayerStatus {
  /** IP address it reads from. */
  readonly address: string;
  /** When it joined, epoch ms. */
  readonly since: number;
  /** Audio and video payload bytes sent to it. */
  readonly bytesOut: number;
  /** Frames dropped because it was slow. */
  readonly droppedFrames: number;
}
