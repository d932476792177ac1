// Reserves the name of a publish request: of two simultaneous requests exactly one gets it.
import type { Rival, Rivals } from "../../cluster/rivals.ts";
import type { Media } from "../../media.ts";
import { type Denied, denied } from "../denials.ts";
import type { NamedStream } from "../limits/named-stream.ts";
import type { OrganisationLimiter } from "../limits/organisation-limiter.ts";
import type { Publishes, Reservation } from "../publishes.ts";
import type { Intent } from "../record.ts";

/** A running publish that has been silent this long is replaced by a new one of the same name (W20), ms. */
const SILENT_FOR_REPLACEMENT_MS = 5_000;
/** A publish and its backup share connections, which no other server can take over. */
const APART = {
  publish: "The backup of this stream is live on another server of the service: publish there",
  backup: "This stream is live on another server of the service: publish its backup there",
};

export interface ReservingDeps {
  /** Publishes of other nodes; null where there are none. */
  readonly rivals: Rivals | null;
  /** Limits on what one organisation may start. */
  readonly organisationLimits: OrganisationLimiter;
  readonly publishes: Publishes;
  readonly media: () => Pick<Media, "snapshot">;
  readonly settings: { readonly duplicate: "reject_if_active" | "replace" };
}

/** `rival`: the publish of another node that it replaces. */
export async function reserve(
  deps: ReservingDeps,
  slot: Pick<Intent, "name" | "backup">,
  stream: NamedStream,
): Promise<{ readonly outcome: "reserved"; readonly reservation: Reservation; readonly rival: Rival | null } | Denied> {
  const { publishes, media, settings } = deps;
  const { rival = null, otherAt = null } = (await deps.rivals?.find(slot)) ?? {};
  if (otherAt !== null)
    return { ...denied("already_live", APART[slot.backup ? "backup" : "publish"]), elsewhere: otherAt };
  if (rival !== null && !givesWay(rival, settings)) return denied("already_live");
  const overLimit = await deps.organisationLimits(stream, slot.name);
  // Nothing is awaited from here to the reservation.
  const running = publishes.live(slot);
  if (running !== null) {
    const { silentMs = null } = media().snapshot(running) ?? {};
    if (!givesWay({ silentMs, isEnding: publishes.isEnding(running) }, settings)) return denied("already_live");
  }
  const refusal = overLimit();
  if (refusal !== null) return refusal;
  const reservation = publishes.reserve(slot, stream.organisation_id);
  return reservation === null ? denied("already_live") : { outcome: "reserved", reservation, rival };
}

/** Whether the publish that holds the name may be replaced; `silentMs` is null when it is not known. */
function givesWay(
  { silentMs, isEnding }: Pick<Rival, "silentMs" | "isEnding">,
  { duplicate }: ReservingDeps["settings"],
): boolean {
  if (duplicate === "replace" || isEnding) return true;
  return silentMs !== null && silentMs >= SILENT_FOR_REPLACEMENT_MS;
}
