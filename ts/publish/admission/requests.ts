// Publish requests of both protocols until they are answered; once the service stops, all are denied.
import type { PublishRequested } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { createAdmission } from "../admission.ts";
import type { Allowed } from "../allowed.ts";
import { type Denied, denied, isOfNode } from "../denials.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { RefusedPublish } from "../refusals/refusals.ts";
import type { PublishRequest } from "./publish-request.ts";

export interface Requests {
  /** Decides a publish request. Never rejects. An allowed one is started or dropped at once. */
  admit(request: PublishRequest): Promise<Allowed | Denied>;
  /** Answers one that came by RTMP. */
  answer(event: PublishRequested): Promise<void>;
  /** Why this node accepts no publish at all for now; null while it accepts some. A refusal is counted and logged. */
  closed(request: RefusedPublish): Denied | null;
}

export function createRequests(deps: {
  readonly admission: Pick<ReturnType<typeof createAdmission>, "admit" | "closed">;
  readonly events: Pick<PublishEvents, "emit">;
  readonly media: () => Pick<Media, "allow" | "deny">;
  readonly rtmpElsewhere: () => readonly string[];
  readonly isStopping: () => boolean;
}): Requests {
  const { admission, events, isStopping } = deps;

  async function admit(request: PublishRequest): Promise<Allowed | Denied> {
    const decision = isStopping() ? denied("stopping") : await admission.admit(request);
    if (decision.outcome === "denied")
      reportDenied(decision, { ...request, protocol: request.via ?? request.protocol });
    return decision;
  }

  function reportDenied(refusal: Denied, request: RefusedPublish): void {
    if (!(request.mayMove && isOfNode(refusal))) events.emit({ kind: "denied", refusal, request });
  }

  return {
    admit,
    async answer(event) {
      const media = deps.media();
      const elsewhere = isStopping() ? { elsewhere: deps.rtmpElsewhere() } : {};
      const decision = await admit({ ...event, protocol: "rtmp" });
      if (decision.outcome === "denied") return media.deny(event.request, { ...decision, ...elsewhere });
      const { clientId, upstreams } = decision.publish;
      const started = await decision.start((hold) => {
        media.allow(event.request, { clientId, upstreams, hold });
        return null;
      });
      if (started.outcome === "denied") media.deny(event.request, started);
    },
    closed(request) {
      const refusal = isStopping() ? null : admission.closed();
      if (refusal !== null) reportDenied(refusal, request);
      return refusal;
    },
  };
}
