// Handles the core's events about upstreams: where to dial, and when one starts or stops receiving a stream.
import type { Logger } from "pino";
import type { AddressWanted, UpstreamChanged } from "../../media/events.ts";
import type { Media } from "../../media.ts";
import type { Metrics } from "../../metrics.ts";
import type { Resolve } from "../addresses/resolver.ts";
import { type Intent, identityOf } from "../record.ts";
import { addressesToDial } from "./deployment-upstreams.ts";

export interface UpstreamEvents {
  /** Resolves the host that a push needs, and answers. */
  answer(event: AddressWanted): Promise<void>;
  note(event: UpstreamChanged): void;
}

export function createUpstreamEvents(deps: {
  readonly media: () => Pick<Media, "dial" | "forbid">;
  /** The publish that runs under a client id; null when none does. */
  readonly publishOf: (clientId: number) => Intent | null;
  /** The organisation whose upstream is tested under an id; null for no test. */
  readonly testedBy: (clientId: number) => string | null;
  readonly metrics: Pick<Metrics, "countUpstreamLost">;
  readonly log: Logger;
  readonly resolve: Resolve;
  /** `dev` allows private addresses (W21). */
  readonly settings: { readonly dev: boolean; readonly upstreamPush: readonly string[] };
}): UpstreamEvents {
  const { publishOf, log, metrics, settings } = deps;
  const identity = (clientId: number) => {
    const publish = publishOf(clientId);
    return publish === null ? { clientId } : identityOf(publish);
  };
  return {
    async answer(event) {
      const { clientId, host, push } = event;
      const organisation = publishOf(clientId)?.organisationId ?? deps.testedBy(clientId);
      const addresses = await addressesToDial(event, organisation, { ...settings, resolve: deps.resolve });
      if (addresses === null || addresses.length === 0)
        log.warn({ ...identity(clientId), host }, "upstream has no usable address");
      if (addresses === null) deps.media().forbid(push);
      else deps.media().dial(push, addresses);
    },
    note({ clientId, upstreamId, upstream, detail, cause, sending }) {
      const about = { ...identity(clientId), upstreamId, upstream };
      if (sending) return log.info(about, "upstream sending");
      log.warn({ ...about, cause, detail }, "upstream lost");
      metrics.countUpstreamLost();
    },
  };
}
