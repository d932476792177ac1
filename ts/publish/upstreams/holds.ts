// Publishes that were lost and whose upstreams and players the media core holds for a while: which publish goes on with
// them, and when nobody may. The publish itself is over: this is no part of its life.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { HoldEnded } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import { type Intent, identityOf, recordContinued } from "../record.ts";

/** A publish, as far as its successor needs it. */
interface Lost {
  readonly clientId: number;
  readonly intent: Intent;
}

export interface Holds<Publish extends Lost> {
  /** Its publisher was lost, and its upstreams and players are held. */
  add(publish: Publish): void;
  /** They are not any more. `successor`: the publish that runs on with them. */
  end(event: HoldEnded, successor: Publish | undefined): Promise<void>;
  /** The lost publish that one with this intent goes on with: the same stream with the same custom arguments. Any other
   *  of the name ends: the name has another publish now. */
  lostBefore(intent: Intent): Publish | null;
  find(clientId: number): Publish | undefined;
  all(): readonly Publish[];
  /** Nobody goes on with those that are meant. False when there is none. */
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

/** Two publishes of the same stream, whichever way they came, one perhaps as its backup. */
function isSame(one: Intent, other: Intent): boolean {
  if (one.streamId !== other.streamId) return false;
  const [of, and] = [one.otherArguments, other.otherArguments];
  if (of === null || and === null) return of === and;
  return Buffer.compare(of, and) === 0;
}
