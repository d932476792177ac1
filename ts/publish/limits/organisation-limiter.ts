// Whether one organisation may begin one more publish: streams live at a time, what they send together, and how often it
// asks. What one organisation is refused costs no other anything. No other node is asked: streams that run there are counted
// in the store, while bitrate and requests are those of this node.
import type { Kysely } from "kysely";
import type { OrganisationLimits } from "../../capacity/settings.ts";
import type { OrganisationTable, Schema } from "../../store/schema.ts";
import { type Denied, denied } from "../denials.ts";
import type { Publishes } from "../publishes.ts";
import { Bucket } from "./bucket.ts";

/** What a publish counts for whose bitrate is not measured yet: that of a usual 720p, kbit/s. */
const UNMEASURED_KBPS = 2_500;
/** Organisations whose requests are remembered; the one that asked longest ago is forgotten first. */
const REMEMBERED_LIMIT = 10_000;

/** Of an organisation; null is what the service has for all. */
export type OwnLimits = Pick<OrganisationTable, "max_streams" | "max_ingest_kbps" | "max_setups_per_second">;

/** Looks up what is to be looked up for one publish of `name`; what comes back decides at once, when its name is about to be
 *  reserved, and is null when the organisation may begin it. */
export type OrganisationLimiter = (
  of: OwnLimits & { readonly organisation_id: string },
  name: string,
) => Promise<() => Denied | null>;

export interface OrganisationLimiterDeps {
  readonly db: Kysely<Schema>;
  readonly member: { readonly epoch: number };
  /** Null or absent where there are no other nodes. */
  readonly rivals?: object | null;
  readonly publishes: Pick<Publishes, "countOf" | "running">;
  readonly ingestKbpsOf?: (clientId: number) => number | null;
  readonly clock: { now(): number };
  readonly settings: { readonly organisationLimits?: OrganisationLimits };
}

/** What holds for an organisation: its own limits, or else those of the service. 0 is no limit. */
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
  const requests = new Map<string, { readonly perSecond: number; readonly bucket: Bucket }>();

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

  /** Streams of the organisation that other nodes have; one of `name` is about to be replaced. */
  async function liveElsewhere(organisationId: string, name: string): Promise<number> {
    const { live } = await db
      .selectFrom("publish")
      .select((eb) => eb.fn.countAll<number>().as("live"))
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
    const measured = others.map(({ clientId }) => deps.ingestKbpsOf?.(clientId) ?? UNMEASURED_KBPS);
    const starting = publishes.countOf(organisationId, name) - others.length;
    return measured.reduce((sum, each) => sum + each, Math.max(0, starting) * UNMEASURED_KBPS);
  }

  /** Null, or how long the organisation is to wait, seconds. */
  function wait(organisationId: string, perSecond: number): number | null {
    const now = clock.now();
    const known = requests.get(organisationId);
    const entry = known?.perSecond === perSecond ? known : { perSecond, bucket: new Bucket(perSecond, now) };
    requests.delete(organisationId);
    requests.set(organisationId, entry);
    if (requests.size > REMEMBERED_LIMIT) requests.delete(requests.keys().next().value ?? "");
    return entry.bucket.take(now);
  }
}
