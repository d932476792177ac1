// Players, and pulls: streams that another node of the service publishes and that are played from there for the players of
// this one. Shapes and names mirror crates/bridge/src/pull.rs.
import type { PullState } from "./codes.ts";

/** Where a stream is pulled from. */
export interface PullSource {
  /** The publish there. */
  readonly clientId: number;
  /** A complete RTMP URL, by TLS when it says so: it may hold secrets. */
  readonly url: string;
  /** The IP address to connect to. */
  readonly address: string;
}

/** How one pull does. */
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
  /** The same measure, handed to the players. */
  readonly bytesOut: number;
  /** When it began, epoch ms. */
  readonly since: number;
  /** `connecting`: until the first frame; `reconnecting`: its connection was lost, and its players wait. */
  readonly state: PullState;
}

/** What may be asked of the media core about players. */
export interface PlayMedia {
  /** Lets a player read what is published here. Another node of the service is not counted: neither as a player nor with
   *  what it gets. A `PlayEnded` follows in any case, also when the player is gone. */
  allowPlay(request: number, options: { readonly counted: boolean }): void;
  /** Lets a player read a stream of another node: by the pull of its name that runs, else by a new one. It is told that
   *  it plays once there is something of the stream; after 5 s without, that there is none. A `PlayEnded` follows in any
   *  case, and one `PullEnded` for each pull. Throws when the URL or the address is none. */
  pull(request: number, source: PullSource): void;
  /** Where the stream of a pull is now that lost its connection; null: nowhere, and then the pull ends. */
  dialPull(pull: number, source: PullSource | null): void;
  /** The pulls that run, by name. */
  pulls(): readonly PullStatus[];
}

/** A pull as the core counts it. */
interface PullCounters extends Omit<PullStatus, "name" | "state"> {
  readonly name: Uint8Array;
  readonly state: string;
}

export function readPull({ name, state, ...counters }: PullCounters): PullStatus {
  // The core's table of states has exactly these.
  return { ...counters, name: Buffer.from(name).toString(), state: state as PullState };
}

/** How one player of a running publish does. */
export interface PlayerStatus {
  /** IP address it reads from. */
  readonly address: string;
  /** When it joined, epoch ms. */
  readonly since: number;
  /** Audio and video payload bytes handed to it. */
  readonly bytesOut: number;
  /** What it lost because it was slow. */
  readonly droppedFrames: number;
}
