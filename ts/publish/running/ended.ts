// What follows when the media core has ended a publish: its end is recorded, its name freed, and what is left of it held.
import type { Membership } from "../../cluster/membership.ts";
import type { PublishEnded } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { Endings } from "../ending/endings.ts";
import type { Ends } from "../ends.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { Publishes, RunningPublish } from "../publishes.ts";
import type { Holds } from "../upstreams/holds.ts";
import type { Updating } from "./updating.ts";

export interface EndedDeps {
  readonly publishes: Pick<Publishes, "find" | "end" | "freeName">;
  readonly ends: Pick<Ends, "has" | "record">;
  readonly endings: Pick<Endings, "take">;
  readonly holds: Pick<Holds<RunningPublish>, "add">;
  readonly updating: Pick<Updating, "stop">;
  readonly events: Pick<PublishEvents, "emit">;
  readonly media: () => Pick<Media, "release">;
  readonly member: Pick<Membership, "epoch">;
  /** Whether nothing is held any more. */
  readonly isStopping: () => boolean;
}

/** The first end of a publish counts. */
export async function endPublish(deps: EndedDeps, event: PublishEnded): Promise<void> {
  const { publishes, ends, endings, holds, updating, events, media, member } = deps;
  const { clientId, bytesIn, bytesOut, droppedFrames, tracks } = event;
  if (ends.has(clientId)) return;
  const { reason, ending } = endings.take(event, publishes.find(clientId));
  const publish = publishes.end(clientId);
  const lastUpdate = updating.stop(clientId);
  const subject = publish?.intent ?? null;
  const { organisationId, epoch = member.epoch } = subject ?? {};
  const counters = { bytesIn, bytesOut, droppedFrames, tracks };
  const recording = ends.record({ clientId, reason, ending, counters, organisationId, epoch, subject }, lastUpdate);
  if (publish !== undefined) publishes.freeName(publish, recording.tried);
  if (event.held && publish !== undefined) holds.add(publish);
  events.emit({ kind: "ended", publish: publish ?? null, counters: event, reason, ending });
  if (event.held && deps.isStopping()) media().release(clientId);
  await recording.done;
}
