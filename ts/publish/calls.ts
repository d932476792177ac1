// The calls to webhooks and what belongs to them: the delivery log, the outboxes, the copies for second webhooks, and
// alerts. Second webhooks have parts of their own, so that nothing about the first waits for them.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../cluster/membership.ts";
import type { PublishingMetrics } from "../metrics.ts";
import type { Customers } from "../organisation/customers.ts";
import type { Schema } from "../store/schema.ts";
import type { Resolve } from "./addresses/resolver.ts";
import { createAlertRecords } from "./alerts/alert-records.ts";
import { watchForAlerts } from "./alerts/alerts.ts";
import type { EndEvents } from "./ends.ts";
import type { PublishEvents } from "./publish-events.ts";
import type { PublishingSettings } from "./publishing-settings.ts";
import { createWebhooks } from "./webhook/call.ts";
import { createCopies } from "./webhook/copies/copies.ts";
import { createDeliveryLog } from "./webhook/delivery-log.ts";
import { createOutbox, type Outbox } from "./webhook/outbox/outbox.ts";
import { createWorkbench } from "./webhook/workbench.ts";

export interface CallsDeps {
  readonly db: Kysely<Schema>;
  /** For reads of what was sent. */
  readonly reads: Kysely<Schema>;
  readonly member: Membership;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly settings: PublishingSettings;
  readonly customers: Pick<Customers, "of">;
  readonly metrics: PublishingMetrics;
  readonly events: PublishEvents;
  readonly resolve: Resolve;
}

export function createCalls(deps: CallsDeps) {
  const { db, reads, member, clock, log, settings, customers, metrics, events, resolve } = deps;
  const { deadlineMs } = settings;
  const deliveries = createDeliveryLog({ db, clock, log });
  const { webhook, copies: copyWebhook } = createWebhooks({
    webhookCa: settings.webhookCa,
    dev: settings.dev,
    resolve,
    log,
    clock,
    observe(call, answer, tookMs, response) {
      const { organisationId, isTrial = false } = call;
      deliveries.note(call, answer, tookMs, response);
      events.emit({ kind: "asked", call: call.event.call, organisationId, isTrial, answer, tookMs });
      copies.send(call);
    },
    observeCopy(call, answer, tookMs, response) {
      deliveries.note(call, answer, tookMs, response, "copies");
      const outcome = answer.outcome === "answered" ? String(answer.status) : answer.cause;
      metrics.copies.countCall(call.event.call, outcome);
    },
  });
  const outbox = createOutbox({ db, table: "outbox", member, clock, log, customers, metrics, webhook, deadlineMs });
  const copyOutbox = createOutbox({
    db,
    table: "webhook_copy_outbox",
    member,
    clock,
    log,
    customers,
    webhook: copyWebhook,
    deadlineMs,
  });
  const copies = createCopies({
    webhook: copyWebhook,
    outbox: copyOutbox,
    metrics: metrics.copies,
    log,
    deadlineMs,
  });
  const outboxes = { outbox, webhook_copy_outbox: copyOutbox };
  const records = createAlertRecords({ db, member, customers, outboxes, clock, log });
  watchForAlerts({ events, records, metrics: metrics.copies, clock, log });
  metrics.copies.watch({ load: copyWebhook.load, outbox: copyOutbox.depth });

  return {
    deliveries,
    webhook,
    workbench: createWorkbench({ db, reads, webhook, copies: copyWebhook, deliveries, customers, clock, deadlineMs }),
    depth: outbox.depth,
    outbox: bothOf(outbox, copyOutbox),
    /** Tries what is due once more, for at most `limitMs`, and closes every connection. */
    async stop(limitMs: number): Promise<void> {
      await Promise.all([
        records.stop(limitMs / 2).then(() => outbox.stop(limitMs / 2)),
        copies.stop(limitMs / 2).then(() => copyOutbox.stop(limitMs / 2)),
      ]);
      await webhook.close();
      await deliveries.stop();
    },
  };
}

/** The publish_done of a publish goes to both. */
function bothOf(outbox: Outbox, copies: Outbox): EndEvents {
  return {
    hold(clientId) {
      outbox.hold(clientId);
      copies.hold(clientId);
    },
    release(clientId, organisation, written) {
      outbox.release(clientId, organisation, written.includes("outbox"));
      copies.release(clientId, organisation, written.includes("webhook_copy_outbox"));
    },
    wake() {
      outbox.wake();
      copies.wake();
    },
  };
}
