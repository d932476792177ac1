// Which part of publishing each event of the media core is for.
import type { MediaEvent, PublishEnded } from "../../media/events.ts";
import type { Requests } from "../admission/requests.ts";
import type { OnAir } from "../backup/on-air.ts";
import type { Players } from "../players.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { Publishes, RunningPublish } from "../publishes.ts";
import type { RefusedConnections } from "../refused-connections.ts";
import type { Holds } from "../upstreams/holds.ts";
import type { UpstreamEvents } from "../upstreams/upstream-events.ts";
import type { UpstreamTests } from "../upstreams/upstream-tests.ts";

/** Never throws. */
export function mediaEvents(parts: {
  /** Keeps work so that a stop can wait for it. */
  readonly track: (work: Promise<void>) => void;
  readonly answer: Requests["answer"];
  readonly end: (event: PublishEnded) => Promise<void>;
  readonly holds: Pick<Holds<RunningPublish>, "end">;
  readonly find: Publishes["find"];
  readonly onAir: Pick<OnAir, "note">;
  readonly players: Players;
  readonly refusedConnections: RefusedConnections;
  readonly upstreams: UpstreamEvents;
  readonly upstreamTests: Pick<UpstreamTests, "note">;
  readonly events: Pick<PublishEvents, "emit">;
}): (event: MediaEvent) => void {
  const { track, answer, end, holds, find, onAir, players, refusedConnections, upstreams, upstreamTests, events } =
    parts;
  return (event) => {
    switch (event.kind) {
      case "publish_requested":
        return track(answer(event));
      case "publish_ended":
        return track(end(event));
      case "hold_ended":
        return track(holds.end(event, find(event.successor ?? 0)));
      case "on_air_changed":
        onAir.note(event);
        return events.emit(event);
      case "play_requested":
      case "play_ended":
      case "source_wanted":
      case "pull_ended":
        return track(players.handle(event));
      case "connection_refused":
        refusedConnections.note(event);
        return events.emit(event);
      case "address_wanted":
        return track(upstreams.answer(event));
      case "upstream_changed":
        upstreams.note(event);
        return events.emit(event);
      case "upstream_tested":
        return upstreamTests.note(event);
    }
  };
}
