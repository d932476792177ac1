// The events of the media core by their kinds. Described in crates/bridge/src/events.rs.
import type { MediaEvent } from "#native";

export type { MediaEvent };

type EventOf<Kind extends MediaEvent["kind"]> = Readonly<Extract<MediaEvent, { kind: Kind }>>;

export type PublishRequested = EventOf<"publish_requested">;
export type PublishEnded = EventOf<"publish_ended">;
export type HoldEnded = EventOf<"hold_ended">;
export type OnAirChanged = EventOf<"on_air_changed">;
export type PlayRequested = EventOf<"play_requested">;
export type PlayEnded = EventOf<"play_ended">;
export type SourceWanted = EventOf<"source_wanted">;
export type PullEnded = EventOf<"pull_ended">;
export type ConnectionRefused = EventOf<"connection_refused">;
export type AddressWanted = EventOf<"address_wanted">;
export type UpstreamChanged = EventOf<"upstream_changed">;
export type UpstreamTested = EventOf<"upstream_tested">;

/** What the end of a publish that sent nothing reports. */
export const NO_MEDIA = {
  bytesIn: 0,
  bytesOut: 0,
  videoFrames: 0,
  droppedFrames: 0,
  tracks: { video: null, audio: null },
  packetsLost: null,
};
