// update_publish: when it is sent (W14), its content, and what its answers mean for the publish (W15, W16).
import type { Logger } from "pino";
import type { Membership } from "../cluster/membership.ts";
import type { Media } from "../media.ts";
import type { Customers } from "../organisation/customers.ts";
import type { Trace } from "../tracing/trace.ts";
import { type Ending, endingOf } from "./ending/ending.ts";
import type { WebhookAnswer } from "./webhook/answer.ts";
import { updateBody, type WebhookSubject } from "./webhook/body.ts";
import type { Webhook } from "./webhook/call.ts";
import { newWebhookId } from "./webhook/signature.ts";
import { updateExtras } from "./webhook/update-extras.ts";

/** The first update is sent earlier or later by up to this share, so that publishes accepted together drift apart. */
const FIRST_JITTER = 0.1;

/** An update ends at least this long before the others may declare this node dead, ms: what it has written may still be
 *  on its way to the customer. */
const LEASE_MARGIN_MS = 1_000;
/** With less time than this an update is not sent, ms: the customer could not answer it. The next one follows. */
const SHORTEST_DEADLINE_MS = 500;

export interface Updates {
  /** No update starts after this; resolves when the one in flight has been answered. */
  stop(): Promise<void>;
}

/** Calls `post` once after `intervalMs`, then `intervalMs` after each answer, never twice at a time, until it returns
 *  "stop". `post` must not reject and must end by its own deadline. */
export function startUpdates(intervalMs: number, post: () => Promise<"continue" | "stop">): Updates {
  let stopped = false;
  let inFlight: Promise<void> = Promise.resolve();
  let timer = setTimeout(tick, intervalMs * (1 + FIRST_JITTER * (2 * Math.random() - 1)));

  function tick(): void {
    inFlight = post().then((next) => {
      if (!stopped && next === "continue") timer = setTimeout(tick, intervalMs);
    });
  }

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await inFlight;
    },
  };
}

export interface UpdatedPublish extends WebhookSubject {
  readonly organisationId: string;
  readonly url: string;
  readonly trace: Trace;
}

export interface UpdateDeps {
  readonly media: () => Pick<Media, "snapshot" | "whipDiagnostics">;
  readonly member: Pick<Membership, "sureForMs">;
  readonly end: (ending: Ending) => void;
  readonly webhook: Pick<Webhook, "post">;
  readonly customers: Pick<Customers, "of">;
  readonly log: Logger;
  readonly deadlineMs: number;
  /** A monotonic time, ms: a publish grows no older because a clock is set. */
  readonly elapsed?: () => number;
}

/** The function that `startUpdates` calls for one publish, which has just been accepted: asks the customer, and ends the
 *  publish when the answer says so. */
export function createUpdate(publish: UpdatedPublish, deps: UpdateDeps): () => Promise<"continue" | "stop"> {
  const { log, elapsed = () => performance.now() } = deps;
  const { clientId, organisationId, url } = publish;
  const trace_id = publish.trace.traceId;
  const acceptedAt = elapsed();
  const extras = updateExtras(acceptedAt);
  let rejections = 0;
  let unreachable = 0;

  return async () => {
    try {
      return await update();
    } catch (err) {
      log.error({ err, clientId, trace_id }, "update_publish could not be sent");
      return "continue";
    }
  };

  async function update(): Promise<"continue" | "stop"> {
    const snapshot = deps.media().snapshot(clientId);
    if (snapshot === null) return "continue"; // not started yet, or its end is on the way
    const now = elapsed();
    const { keys, settings, webhook, copies } = await deps.customers.of(organisationId);
    // Past this moment another node may end the publish and send its publish_done, which an update must not follow (W18).
    const deadlineMs = Math.min(deps.deadlineMs, deps.member.sureForMs() - LEASE_MARGIN_MS);
    if (deadlineMs < Math.min(deps.deadlineMs, SHORTEST_DEADLINE_MS)) return "continue";
    const answer = await deps.webhook.post({
      organisationId,
      url,
      isFormer: url !== webhook,
      id: newWebhookId(),
      body: updateBody(publish, {
        time: Math.floor((now - acceptedAt) / 1_000),
        timestamp: Math.floor(snapshot.timestampMs),
        extras: extras(snapshot, deps.media().whipDiagnostics(clientId), settings.update_fields, now),
      }),
      keys,
      deadlineMs,
      retryConnection: false,
      copies,
      trace: publish.trace,
      event: { call: "update_publish", clientId, name: publish.name, attempt: 1 },
    });
    // Time that was cut short is not the customer's fault.
    const isCutShort = deadlineMs < deps.deadlineMs;
    return isCutShort && answer.outcome === "unreachable" ? "continue" : handleAnswer(answer, settings);
  }

  function handleAnswer(
    answer: WebhookAnswer,
    settings: Awaited<ReturnType<Customers["of"]>>["settings"],
  ): "continue" | "stop" {
    if (answer.outcome === "unreachable") {
      unreachable += 1;
      log.warn(
        { clientId, trace_id, cause: answer.cause, detail: answer.detail, inARow: unreachable },
        "update_publish had no answer",
      );
      const limit = settings.update_max_unreachable;
      if (limit === 0 || unreachable < limit) return "continue"; // W16: the next tick tries again
      deps.end(endingOf("update_unanswered"));
      return "stop";
    }
    unreachable = 0;
    if (answer.status === 200) {
      rejections = 0;
      return "continue";
    }
    rejections += 1;
    log.warn({ clientId, trace_id, status: answer.status, inARow: rejections }, "update_publish was rejected");
    if (answer.status !== 403 && rejections < settings.update_reject_after) return "continue";
    const reason = settings.reason_to_broadcaster ? answer.reason : null;
    deps.end(endingOf("ended_by_customer", reason));
    return "stop";
  }
}
