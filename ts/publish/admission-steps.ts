// How long each step of an admission takes, one line of the log at debug. Steps are found by the asynchronous context that
// they run in, so that what decides (admission.ts, lifecycle.ts) knows nothing of it. Without debug nothing is measured.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "pino";
import type { Publishing, PublishingDeps } from "./lifecycle.ts";

interface Admission {
  readonly startedAt: number;
  /** By name, ms; the customer is asked while the intent is recorded. */
  readonly steps: Record<string, number>;
  clientId: number | null;
  organisation: string | null;
  isOver: boolean;
}

const current = new AsyncLocalStorage<Admission>();

/** Does `work`, and if it is a step of an admission that is being measured, notes how long that took. */
export async function step<T>(name: string, work: () => Promise<T>, clientId: number | null = null): Promise<T> {
  const admission = current.getStore();
  if (admission === undefined || admission.isOver) return await work();
  if (clientId !== null) admission.clientId = clientId;
  const startedAt = performance.now();
  try {
    return await work();
  } finally {
    admission.steps[name] = tenths(performance.now() - startedAt);
  }
}

/** Publishing as `create` makes it; at debug every admission leaves a line with its steps. */
export function withAdmissionSteps(create: (deps: PublishingDeps) => Publishing, deps: PublishingDeps): Publishing {
  const { log, customers, metrics } = deps;
  if (!log.isLevelEnabled("debug")) return create(deps);
  const publishing = create({
    ...deps,
    customers: {
      of(organisationId) {
        const admission = current.getStore();
        if (admission !== undefined) {
          // What came before is the look-up of the stream.
          admission.steps.stream ??= tenths(performance.now() - admission.startedAt);
          admission.organisation = organisationId;
        }
        return step("settings", () => customers.of(organisationId));
      },
    },
    holdsToken: (asked, name) => step("token", () => deps.holdsToken(asked, name)),
    streamUpstreams: (streamId) => step("upstreams", () => deps.streamUpstreams(streamId)),
    metrics: {
      ...metrics,
      countStart(protocol) {
        tell(log, { outcome: "allowed", protocol });
        metrics.countStart(protocol);
      },
      countDenial(cause) {
        tell(log, { outcome: "denied", cause });
        metrics.countDenial(cause);
      },
    },
  });
  return {
    ...publishing,
    handle: (event) =>
      event.kind === "publish_requested" ? begun(() => publishing.handle(event)) : publishing.handle(event),
    openWhip: (request, open) => begun(() => publishing.openWhip(request, open)),
  };
}

function begun<T>(admit: () => T): T {
  const startedAt = performance.now();
  return current.run({ startedAt, steps: {}, clientId: null, organisation: null, isOver: false }, admit);
}

/** Once: what runs on in the same context, such as the updates of the publish, is no step any more. */
function tell(log: Logger, outcome: object): void {
  const admission = current.getStore();
  if (admission === undefined || admission.isOver) return;
  admission.isOver = true;
  const { clientId, organisation, steps, startedAt } = admission;
  const tookMs = tenths(performance.now() - startedAt);
  const about = { ...(clientId === null ? {} : { clientId }), ...(organisation === null ? {} : { organisation }) };
  log.debug({ ...about, ...outcome, steps: { stream: tookMs, ...steps }, tookMs }, "publish request decided");
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
