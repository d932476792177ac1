// Logs how long each step of an admission takes, one debug line per admission. Below debug level nothing is measured.
import type { Logger } from "pino";
import { measured, tenths } from "../../step-times.ts";
import type { Denied } from "../denials.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { Intent } from "../record.ts";

export function logAdmissionSteps(events: Pick<PublishEvents, "listen">, log: Logger): void {
  if (!log.isLevelEnabled("debug")) return;
  events.listen((event) => {
    if (event.kind === "found") noteFound(event.organisationId);
    if (event.kind === "decided") logSteps(log, event);
  });
}

function noteFound(organisationId: string): void {
  const admission = measured();
  if (admission === undefined) return;
  // The time before this point is the look-up of the stream.
  admission.steps.stream ??= tenths(performance.now() - admission.startedAt);
  admission.organisation = organisationId;
}

/** Whatever continues in the same context, such as the updates of the publish, is not a step of the admission. */
function logSteps(
  log: Logger,
  { protocol, refusal }: { readonly protocol: Intent["protocol"]; readonly refusal: Denied | null },
): void {
  const admission = measured();
  if (admission === undefined) return;
  admission.isOver = true;
  const { clientId, organisation, steps, startedAt } = admission;
  const tookMs = tenths(performance.now() - startedAt);
  const about = { ...(clientId === null ? {} : { clientId }), ...(organisation === null ? {} : { organisation }) };
  const outcome =
    refusal === null ? { outcome: "allowed", protocol } : { outcome: "denied", cause: refusal.reason ?? refusal.cause };
  log.debug({ ...about, ...outcome, steps: { stream: tookMs, ...steps }, tookMs }, "publish request decided");
}
