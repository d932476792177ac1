// Lost publishes whose upstreams and players the media core holds for a while: which publish takes them over, and when
// they are given up. The publish itself has ended: a hold is not part of its life.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { HoldEnded } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import { type Intent, identityOf, recordContinued } from "../record.ts";

/** The parts of a publish that its successor needs. */
interface Lost {
  readonly clientId: number;
  readonly intent: Intent;
}

export interface Holds<Publish extends Lost> {
  /** The publisher was lost, and the upstreams and players are held. */
  add(publish: Publish): void;
  /** The hold is over. `successor`: the publish that took them over. */
  end(event: HoldEnded, successor: Publish | undefined): Promise<void>;
  /** The lost publish that one with this intent continues: the same stream with the same custom arguments. Any other
   *  hold of the name ends, since the name has another publish from here on. */
  lostBefore(intent: Intent): Publish | null;
  find(clientId: number): Publish | undefined;
  all(): readonly Publish[];
  /** Ends the matching holds. False when there is none. */
  release(isMeant: (publish: Publish) => boolean): boolean;
}

export function createHolds<Publish extends Lost & { continues: number | null }>(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "release">;
  readonly log: Logger;
}): Holds<Publish> {
  const { db, media, log } = deps;
  const held = new Map<number, Publish>();

  return {
    add(publish) {
      held.set(publish.clientId, publish);
    },
    async end({ clientId, successor: successorId }, successor) {
      const of = held.get(clientId);
      held.delete(clientId);
      const who = of === undefined ? { clientId } : identityOf(of.intent);
      if (successorId === null) return log.info(who, "lost publish was not continued");
      if (successor !== undefined) successor.continues = clientId;
      log.info({ ...who, successor: successorId }, "lost publish is continued");
      await recordContinued(db, successorId, clientId);
    },
    lostBefore(intent) {
      let before: Publish | null = null;
      for (const publish of held.values()) {
        if (publish.intent.name !== intent.name) continue;
        if (isSame(publish.intent, intent)) before = publish;
        else media().release(publish.clientId);
      }
      return before;
    },
    find: (clientId) => held.get(clientId),
    all: () => [...held.values()],
    release(isMeant) {
      const meant = [...held.values()].filter(isMeant);
      for (const { clientId } of meant) media().release(clientId);
      return meant.length > 0;
    },
  };
}

/** Whether both are publishes of the same stream, by whatever protocol, one perhaps as its backup. */
function isSame(one: Intent, other: Intent): boolean {
  if (one.streamId !== other.streamId) return false;
  const [of, and] = [one.otherArguments, other.otherArguments];
  if (of === null || and === null) return of === and;
  return Buffer.compare(of, and) === 0;
}
