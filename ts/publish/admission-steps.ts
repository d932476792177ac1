// Logs how long each step of an admission takes, one debug line per admission. The code that decides (admission.ts,
// lifecycle.ts) does not know about it. Below debug level nothing is measured.
import type { Logger } from "pino";
import { measured, measuring, step, tenths } from "../step-times.ts";
import type { Publishing, PublishingDeps } from "./lifecycle.ts";

/** Publishing as `create` makes it; at debug level every admission logs one line with its steps. */
export function withAdmissionSteps(create: (deps: PublishingDeps) => Publishing, deps: PublishingDeps): Publishing {
  const { log, customers, metrics } = deps;
  if (!log.isLevelEnabled("debug")) return create(deps);
  const publishing = create({
    ...deps,
    customers: {
      of(organisationId) {
        const admission = measured();
        if (admission !== undefined) {
          // The time before this point is the look-up of the stream.
          admission.steps.stream ??= tenths(performance.now() - admission.startedAt);
          admission.organisation = organisationId;
        }
        return step("settings", () => customers.of(organisationId));
      },
    },
    tokenOf: (asked, name) => step("token", () => deps.tokenOf(asked, name)),
    streamUpstreams: (streamId) => step("upstreams", () => deps.streamUpstreams(streamId)),
    metrics: {
      ...metrics,
      countStart(protocol) {
        logSteps(log, { outcome: "allowed", protocol });
        metrics.countStart(protocol);
      },
    },
    refusals: {
      note(refusal) {
        if (refusal.request === "publish") logSteps(log, { outcome: "denied", cause: refusal.reason });
        deps.refusals.note(refusal);
      },
    },
  });
  return {
    ...publishing,
    handle: (event) =>
      event.kind === "publish_requested" ? measuring(() => publishing.handle(event)) : publishing.handle(event),
    openWhip: (request, open) => measuring(() => publishing.openWhip(request, open)),
  };
}

/** Logs once: whatever continues in the same context, such as the updates of the publish, is not a step of the
 *  admission. */
function logSteps(log: Logger, outcome: object): void {
  const admission = measured();
  if (admission === undefined || admission.isOver) return;
  admission.isOver = true;
  const { clientId, organisation, steps, startedAt } = admission;
  const tookMs = tenths(performance.now() - startedAt);
  const about = { ...(clientId === null ? {} : { clientId }), ...(organisation === null ? {} : { organisation }) };
  log.debug({ ...about, ...outcome, steps: { stream: tookMs, ...steps }, tookMs }, "publish request decided");
}
