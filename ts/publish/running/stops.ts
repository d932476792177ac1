// Ends of publishes on purpose, with what is held of them: by whoever may, or by the broadcaster of a WHIP session.
import { type Ending, endingOf } from "../ending/ending.ts";
import type { Endings } from "../ending/endings.ts";
import type { AskedPublish, Publishes, RunningPublish } from "../publishes.ts";
import type { Holds } from "../upstreams/holds.ts";

export interface Stops {
  /** Ends every matching publish, including one still being admitted, which never goes live. Held upstreams and players
   *  of a lost match end, too. False when nothing matched. */
  kick(isMeant: (publish: AskedPublish) => boolean, ending: Ending): boolean;
  /** The broadcaster ends its WHIP session, which may be held; `isLeft`: it disconnected without ending the publish,
   *  which is then treated as lost. False when there is no such session (any more). */
  endWhip(session: string, isLeft?: boolean): boolean;
}

export function createStops(deps: {
  readonly publishes: Pick<Publishes, "stop" | "closeSession">;
  readonly endings: Pick<Endings, "end" | "settle" | "close">;
  readonly holds: Pick<Holds<RunningPublish>, "release" | "all" | "find">;
}): Stops {
  const { publishes, endings, holds } = deps;
  return {
    kick(isMeant, ending) {
      const stopped = publishes.stop(isMeant, ending);
      for (const publish of stopped.running) endings.end(publish, "kicked", ending);
      endings.settle(isMeant, ending);
      const isHeld = holds.release(isMeant);
      return isHeld || stopped.count > 0;
    },
    endWhip(session, isLeft = false) {
      const publish = publishes.closeSession(session);
      if (publish !== undefined) {
        endings.close(publish, isLeft);
        return true;
      }
      // Some clients close their connection before they send the DELETE that ends the session deliberately.
      const isHeld = (of: AskedPublish & Pick<RunningPublish, "session">) => of.session === session;
      if (isLeft) return holds.all().some(isHeld);
      endings.settle(
        ({ intent }) => holds.find(intent.clientId)?.session === session,
        endingOf("ended_by_broadcaster"),
      );
      return holds.release(isHeld);
    },
  };
}
