// Copies of publish and update_publish for second webhooks. Sent once, after the call to the first webhook is over, in the
// order of the publish; what was not delivered is not repeated, as with the calls themselves. They wait in memory, and
// nothing else waits for them but the copy of publish_done, which the outbox delivers (record.ts).
import type { Logger } from "pino";
import { inTime } from "../../../in-time.ts";
import type { CopyMetrics } from "../../../metrics/copy-metrics.ts";
import type { Webhook, WebhookCall } from "../call.ts";
import type { Outbox } from "../outbox/outbox.ts";
import { newWebhookId } from "../signature.ts";

/** Copies of one organisation in flight: few, because nobody waits for them. */
const IN_FLIGHT_LIMIT = 8;
/** Copies of one organisation that wait, and of all; a further one is dropped and counted. */
const ORGANISATION_LIMIT = 1_000;
const WAITING_LIMIT = 10_000;
/** Dropped copies are logged this often at most, ms. */
const DROPPED_EVERY_MS = 10_000;

export interface Copies {
  /** A call to the webhook is over: sends the copy, if the organisation wants any. Returns immediately. */
  send(call: WebhookCall): void;
  /** Waits for those that are left, for at most `limitMs`; no further one begins after it. */
  stop(limitMs: number): Promise<void>;
}

interface Queue {
  /** Client ids with a copy in flight. */
  readonly busy: Set<number>;
  readonly waiting: WebhookCall[];
}

export function createCopies(deps: {
  readonly webhook: Pick<Webhook, "post">;
  readonly outbox: Pick<Outbox, "hold" | "release">;
  readonly metrics: Pick<CopyMetrics, "countDropped">;
  readonly log: Pick<Logger, "warn">;
  readonly deadlineMs: number;
}): Copies {
  const { webhook, outbox, metrics, log, deadlineMs } = deps;
  const queues = new Map<string, Queue>();
  let size = 0;
  let dropped = 0;
  let reporting: NodeJS.Timeout | undefined;
  let isStopped = false;
  let whenEmpty: () => void = () => {};

  function drop(): void {
    dropped += 1;
    metrics.countDropped();
    reporting ??= setTimeout(() => {
      reporting = undefined;
      log.warn({ dropped }, "webhook copies dropped: too many wait");
      dropped = 0;
    }, DROPPED_EVERY_MS).unref();
  }

  function startNext(organisation: string, queue: Queue): void {
    while (!isStopped && queue.busy.size < IN_FLIGHT_LIMIT) {
      const at = queue.waiting.findIndex(({ event }) => !queue.busy.has(event.clientId));
      const [call] = at === -1 ? [] : queue.waiting.splice(at, 1);
      if (call === undefined) return;
      const { clientId } = call.event;
      queue.busy.add(clientId);
      void post(call).finally(() => {
        queue.busy.delete(clientId);
        size -= 1;
        outbox.release(clientId, organisation, false);
        startNext(organisation, queue);
        if (queue.busy.size === 0) queues.delete(organisation);
        if (size === 0) whenEmpty();
      });
    }
  }

  async function post({ organisationId, body, trace, event, copies }: WebhookCall): Promise<void> {
    if (copies == null) return;
    const { call, clientId, name } = event;
    await webhook.post({
      organisationId,
      url: copies.url,
      isFormer: false,
      id: newWebhookId(),
      body,
      keys: copies.keys,
      deadlineMs,
      retryConnection: true,
      trace: trace ?? null,
      event: { call, clientId, name, attempt: 1 },
    });
  }

  return {
    send(call) {
      const { organisationId, event, copies } = call;
      if (copies == null || copies.events === "alerts" || isStopped) return;
      const queue = queues.get(organisationId) ?? { busy: new Set(), waiting: [] };
      if (queue.waiting.length >= ORGANISATION_LIMIT || size >= WAITING_LIMIT) return drop();
      queues.set(organisationId, queue);
      size += 1;
      outbox.hold(event.clientId);
      queue.waiting.push(call);
      startNext(organisationId, queue);
    },
    async stop(limitMs) {
      const empty = new Promise<void>((resolve) => {
        whenEmpty = resolve;
      });
      if (size > 0) await inTime(limitMs, empty, undefined);
      isStopped = true;
      clearTimeout(reporting);
    },
  };
}
