// Ends of running publishes that were asked for: who did, until the media core reports the end; and for how long the
// URLs of ended WHIP sessions answer why.
import type { Kysely } from "kysely";
import type { EndRequest } from "../../media/codes.ts";
import type { PublishEnded } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import type { AskedPublish, RunningPublish } from "../publishes.ts";
import { createEndedSessions } from "./ended-sessions.ts";
import { END_CODES, type Ending, endingFrom, endingOf } from "./ending.ts";
import type { RecordedEndReason } from "./recorded-end-reason.ts";

type Ended = AskedPublish & Pick<RunningPublish, "clientId" | "session">;

export interface Endings {
  /** Ends a running publish. */
  end(publish: Ended, request: EndRequest, ending: Ending): void;
  /** The broadcaster ends its session, or `isLeft` it. */
  close(publish: Ended, isLeft: boolean): void;
  /** Matching sessions that were lost shortly before are over for good if `ending` is final. */
  settle(isMeant: (publish: AskedPublish) => boolean, ending: Ending): void;
  /** The media core has ended a publish: the reason to record, and who ended it on purpose. */
  take(
    event: PublishEnded,
    publish: Ended | undefined,
  ): { readonly reason: RecordedEndReason; readonly ending: Ending | null };
  /** Why a session of this node is over, or about to be; null: it runs, or is not known any more. */
  recent(session: string): Ending | null;
  /** The same for a session that does not run here, also of another node; undefined: no session has such an id. */
  find(session: string): Promise<Ending | null> | undefined;
}

export function createEndings(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "end">;
  /** Epoch ms. */
  readonly clock: { now(): number };
}): Endings {
  /** By client id, until the media core reports the end. */
  const asked = new Map<number, Ending>();
  const sessions = createEndedSessions(deps);

  return {
    end(publish, request, ending) {
      asked.set(publish.clientId, ending);
      sessions.add(publish, ending);
      deps.media().end(publish.clientId, request, ending.reason);
    },
    close(publish, isLeft) {
      sessions.add(
        publish,
        asked.get(publish.clientId) ?? endingOf(isLeft ? "broadcast_lost" : "ended_by_broadcaster"),
      );
      deps.media().end(publish.clientId, isLeft ? "broadcaster_left" : "unpublished", "");
    },
    settle(isMeant, ending) {
      if (END_CODES[ending.code].isFinal) sessions.settle(isMeant, ending);
    },
    take({ clientId, reason: reported }, publish) {
      const ending = asked.get(clientId) ?? null;
      asked.delete(clientId);
      // The media core has a single reason for a publish that the customer ends.
      const isUnanswered = ending?.code === "update_unanswered" && reported === "rejected_by_customer";
      const reason = isUnanswered ? "customer_unreachable" : reported;
      if (publish !== undefined) sessions.add(publish, ending ?? endingFrom(reason));
      return { reason, ending };
    },
    recent: sessions.recent,
    find: (session) => (sessions.isPlausible(session) ? sessions.stored(session) : undefined),
  };
}
