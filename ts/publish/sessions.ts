// Publish sessions that run now, as an operator sees and steers them: list, show, kick, upstreams while live.
import type { PublishTracks, UpstreamStatus } from "../media.ts";

/** One running publish session of an organisation. */
export interface LiveSession {
  readonly clientId: number;
  readonly organisationId: string;
  readonly streamId: string;
  /** Stream name without arguments. */
  readonly name: string;
  readonly protocol: "rtmp" | "whip";
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Epoch ms. */
  readonly acceptedAt: number;
  /** Newest packet time of the publisher's clock, ms. */
  readonly timestampMs: number;
  /** Audio and video payload bytes from the broadcaster (W8). */
  readonly bytesIn: number;
  /** The same measure, handed to all upstreams and players. */
  readonly bytesOut: number;
  readonly droppedFrames: number;
  /** Players and pushes that read it now. */
  readonly subscribers: number;
  /** What it carries, as far as it is known. */
  readonly tracks: PublishTracks;
  readonly upstreams: readonly UpstreamStatus[];
  /** What the protocol tells of its transport; absent when it tells nothing. */
  readonly diagnostics?: unknown;
}

export interface LiveSessions {
  /** Oldest first. */
  list(organisationId: string): LiveSession[];
  /** Undefined when no such publish runs, also for another organisation's. */
  show(organisationId: string, clientId: number): LiveSession | undefined;
  /** Ends the publish with `description` for the broadcaster; false when it does not run. */
  kick(organisationId: string, clientId: number, description: string): boolean;
  /** Ends the publish of this stream; false when none runs. */
  kickStream(organisationId: string, streamId: string, description: string): boolean;
  /** Pushes the running publish to one more upstream until it ends or the upstream is removed. Resolves to false when
   *  it does not run. Rejects with `InvalidValue` for a URL that may not be used (W21). */
  addUpstream(organisationId: string, clientId: number, url: string): Promise<boolean>;
  /** `url`: the complete URL, or one as `show` writes it. False when the publish does not run or has no such upstream. */
  removeUpstream(organisationId: string, clientId: number, url: string): boolean;
}
