// Whether one organisation may start one more publish: concurrent live streams, their total bitrate, and the rate of
// requests. A refusal of one organisation never affects another. No other node is contacted: streams that run there are
// counted in the store, while bitrate and requests are those of this node.

import type { Kysely } from "kysely";
import type { OrganisationLimits } from "../../capacity/settings.ts";
import { RecentMap } from "../../limits/recent-map.ts";
import type { OrganisationTable, Schema } from "../../store/schema.ts";
import { type Denied, denied } from "../denials.ts";
import type { Publishes } from "../publishes.ts";
import { Bucket } from "./bucket.ts";

/** The bitrate assumed for a publish that is not measured yet: that of typical 720p video, kbit/s. */
const UNMEASURED_KBPS = 2_500;
/** Organisations whose request rate is kept; the least recently active one is evicted first. */
const REMEMBERED_LIMIT = 10_000;

/** An organisation's own limits; null applies the service's limit. */
export type OwnLimits = Pick<OrganisationTable, "max_streams" | "max_ingest_kbps" | "max_setups_per_second">;

/** Does the look-ups for one publish of `name`; the function it resolves to decides synchronously, when the name is
 *  about to be reserved, and returns null when the organisation may start it. */
export type OrganisationLimiter = (
  of: OwnLimits & { readonly organisation_id: string },
  name: string,
) => Promise<() => Denied | null>;

export interface OrganisationLimiterDeps {
  readonly db: Kysely<Schema>;
  readonly member: { readonly epoch: number };
  /** Null or absent where there are no other nodes. */
  readonly rivals: object | null;
  readonly publishes: Pick<Publishes, "countOf" | "running">;
  readonly ingestKbpsOf: (clientId: number) => number | null;
  readonly clock: { now(): number };
  readonly settings: { readonly organisationLimits?: OrganisationLimits };
}

/** The limits that apply to an organisation: its own, or else those of the service. 0 means no limit. */
export function limitsOf(own: OwnLimits, service: OrganisationLimits): OrganisationLimits {
  return {
    streams: own.max_streams ?? service.streams,
    ingestKbps: own.max_ingest_kbps ?? service.ingestKbps,
    setupsPerSecond: own.max_setups_per_second ?? service.setupsPerSecond,
  };
}

const NONE: OrganisationLimits = { streams: 0, ingestKbps: 0, setupsPerSecond: 0 };

export function createOrganisationLimiter(deps: OrganisationLimiterDeps): OrganisationLimiter {
  const { db, member, publishes, clock, settings } = deps;
  const requests = new RecentMap<string, { readonly perSecond: number; readonly bucket: Bucket }>(REMEMBERED_LIMIT);

  return async (of, name) => {
    const { organisation_id: id } = of;
    const limits = limitsOf(of, settings.organisationLimits ?? NONE);
    const elsewhere = limits.streams > 0 && deps.rivals ? await liveElsewhere(id, name) : 0;
    return () => {
      if (limits.streams > 0 && elsewhere + publishes.countOf(id, name) >= limits.streams) {
        return denied("too_many_streams");
      }
      if (limits.ingestKbps > 0 && ingestKbps(id, name) >= limits.ingestKbps) return denied("too_much_bitrate");
      const retryAfterS = limits.setupsPerSecond > 0 ? wait(id, limits.setupsPerSecond) : null;
      return retryAfterS === null ? null : { ...denied("too_many_setups"), retryAfterS };
    };
  };

  /** Streams of the organisation live on other nodes, except `name`, which is about to be replaced. A publish and its
   *  backup count once. */
  async function liveElsewhere(organisationId: string, name: string): Promise<number> {
    const { live } = await db
      .selectFrom("publish")
      .select((eb) => eb.fn.count<number>("name").distinct().as("live"))
      .where("state", "=", "live")
      .where("organisation_id", "=", organisationId)
      .where("epoch", "<>", member.epoch)
      .where("name", "<>", name)
      .executeTakeFirstOrThrow();
    return Number(live);
  }

  function ingestKbps(organisationId: string, name: string): number {
    const others = publishes
      .running()
      .filter(({ intent }) => intent.organisationId === organisationId && intent.name !== name);
    const measured = others.map(({ clientId }) => deps.ingestKbpsOf(clientId) ?? UNMEASURED_KBPS);
    const starting = publishes.countOf(organisationId, name) - others.length;
    return measured.reduce((sum, each) => sum + each, Math.max(0, starting) * UNMEASURED_KBPS);
  }

  /** Null when the request may proceed, else how long the organisation has to wait, seconds. */
  function wait(organisationId: string, perSecond: number): number | null {
    const now = clock.now();
    const known = requests.get(organisationId);
    const entry = known?.perSecond === perSecond ? known : { perSecond, bucket: new Bucket(perSecond, now) };
    requests.set(organisationId, entry);
    return entry.bucket.take(now);
  }
}
