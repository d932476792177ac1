// Keeps the due times of waiting events right when the clock is set back, as NTP does after a start with a wrong clock: an
// event that was due in a minute would otherwise wait as long as the step.
import type { Kysely } from "kysely";
import type { Membership } from "../../cluster/membership.ts";
import type { Schema } from "../../store/schema.ts";

/** Smaller steps belong to a clock that is disciplined, or to another node's, ms. */
const STEP_MS = 2_000;

/** Returns a function for each check of the outbox, `now` in epoch ms: when it is less than at the check before, or than
 *  the time at which a waiting event was created, what waits becomes due earlier by as much. */
export function clockStepFollower(db: Kysely<Schema>, member: Pick<Membership, "epoch">) {
  let latest: number | null = null;
  const waiting = () => ({ epoch: member.epoch, delivered_at: null, given_up_at: null });

  async function newest(): Promise<number> {
    const { at } = await db
      .selectFrom("outbox")
      .select((eb) => eb.fn.max("created_at").as("at"))
      .where((eb) => eb.and(waiting()))
      .executeTakeFirstOrThrow();
    return Number(at ?? 0);
  }

  return async (now: number): Promise<void> => {
    const step = (latest ?? (await newest())) - now;
    if (step >= STEP_MS) {
      await db
        .updateTable("outbox")
        .set((eb) => ({ next_attempt_at: eb("next_attempt_at", "-", step) }))
        .where((eb) => eb.and(waiting()))
        .where("next_attempt_at", ">", now)
        .execute();
    }
    latest = now;
  };
}
