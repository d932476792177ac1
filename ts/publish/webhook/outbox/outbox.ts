// Delivers the events that must arrive (W17): reads them from the store, posts them, and retries until an answer
// settles it. Rows outlive the process; the id and the body never change. Events are written elsewhere: record.ts, and
// alerts/alert-records.ts.
// Invariant: a client id has at most one publish_done. Alerts of a publish precede it, in their order (due-events.ts).
import type { Kysely } from "kysely";
import type { Membership } from "../../../cluster/membership.ts";
import { inTime } from "../../../in-time.ts";
import type { Schema } from "../../../store/schema.ts";
import type { Webhook } from "../call.ts";
import { Checks } from "./checks.ts";
import { createDelivery, type DeliveryDeps } from "./delivery.ts";
import { clockStepFollower, dueEvents } from "./due-events.ts";
import { Round } from "./round.ts";
import { createSettlements } from "./settlements.ts";
import { Turns } from "./turns.ts";
import { type OutboxDepth, type OutboxName, outboxDepth } from "./waiting.ts";

export interface Outbox {
  /** Keeps the events of `clientId` back until `release`: an update is still in flight (W18). As often as it is held it
   *  must be released. */
  hold(clientId: number): void;
  /** `organisation`: whose event it is, if known: then nobody else's are looked for. `isWritten`: whether one may have been
   *  written meanwhile; otherwise only what was held back is looked for. */
  release(clientId: number, organisation: string | undefined, isWritten: boolean): void;
  /** The organisation has a new event. */
  added(organisation: string): void;
  /** Delivers everything due, and keeps delivering. Returns immediately. */
  wake(): void;
  /** Tries everything due once more for at most `limitMs`, then stops for good. The rest stays in the store. */
  stop(limitMs: number): Promise<void>;
  depth(): Promise<OutboxDepth>;
}

export interface OutboxDeps extends DeliveryDeps {
  readonly db: Kysely<Schema>;
  readonly table: OutboxName;
  /** The node whose events are delivered: each event belongs to one node, so that no two deliver it and each keeps its
   *  order. */
  readonly member: Pick<Membership, "epoch">;
  readonly webhook: Pick<Webhook, "post" | "load">;
}

export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, table, member, webhook, customers, clock, log, deadlineMs, metrics } = deps;
  const events = dueEvents(db, table, member);
  const round = new Round(events);
  const deliver = createDelivery({
    table,
    webhook,
    customers,
    clock,
    log,
    deadlineMs,
    ...(metrics && { metrics }),
    settle: createSettlements(db, table, member),
    checkBy: (at) => round.checkBy(at),
  });
  const followClock = clockStepFollower(db, table, member);
  const turns = new Turns({ events, followClock, round, checks: () => checks, webhook, clock, deliver, deadlineMs });
  const checks = new Checks({ round, clock, log, startDue: () => turns.startDue() });

  async function flush(): Promise<void> {
    do {
      await checks.checkAll();
      await turns.ended();
    } while (!checks.isClosed && (checks.isChecking || !turns.isIdle));
  }

  return {
    hold: (clientId) => turns.hold(clientId),
    release(clientId, organisation, isWritten) {
      const wasHeldBack = turns.release(clientId);
      if (!isWritten && !wasHeldBack) return;
      if (organisation === undefined) void checks.checkAll();
      else void checks.checkNext(organisation);
    },
    added(organisation) {
      void checks.checkNext(organisation);
    },
    wake() {
      void checks.checkAll();
    },
    async stop(limitMs) {
      checks.stop();
      await inTime(limitMs, flush(), undefined);
      checks.close();
      turns.close();
    },
    depth: () => outboxDepth(db, clock.now(), table),
  };
}
