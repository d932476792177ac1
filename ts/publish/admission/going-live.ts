// From the customer's consent to a publish that is live in the store: the one it replaces has ended, and the stream's own
// upstreams are known.
import type { Kysely } from "kysely";
import type { Place } from "../../capacity/capacity.ts";
import type { Rival } from "../../cluster/rivals.ts";
import type { Media } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import { type Denied, denied } from "../denials.ts";
import { refusalOfStream } from "../ending/refused-streams.ts";
import type { Ends } from "../ends.ts";
import { findStream } from "../limits/named-stream.ts";
import type { Publishes } from "../publishes.ts";
import { type Intent, isNameLive, recordLive } from "../record.ts";
import type { StartingUpstreams, StoredUpstream } from "../upstreams/deployment-upstreams.ts";
import { withdraw } from "./asking.ts";

/** How long a replaced publish may take to end before its successor starts anyway, ms. */
const REPLACEMENT_LIMIT_MS = 1_000;

export interface GoingLiveDeps {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly media: () => Pick<Media, "end">;
  readonly publishes: Publishes;
  readonly ends: Pick<Ends, "record" | "retry">;
  readonly streamUpstreams: StartingUpstreams;
}

/** The stream's own upstreams. `rival`: the publish of another node that it replaces. When it rejects, as when it is
 *  denied, the publish counts as accepted and ended. */
export async function goLive(
  deps: GoingLiveDeps,
  intent: Intent,
  { rival, place }: { readonly rival: Rival | null; readonly place: Pick<Place, "turn"> },
): Promise<{ readonly outcome: "live"; readonly upstreams: readonly StoredUpstream[] } | Denied> {
  const { db, clock, ends, publishes } = deps;
  try {
    await replaceRunning(deps, intent);
    await rival?.replace();
    await publishes.recorded(intent);
    await ends.retry(intent.name);
    await place.turn(true);
    // The upstreams are read last, so that none is missed: those stored from here on are added to the running publish.
    const rows = await recordLive(db, intent, clock.now(), deps.streamUpstreams.query(intent.streamId));
    if (rows !== null) return { outcome: "live", upstreams: deps.streamUpstreams.read(rows) };
  } catch (err) {
    // The customer answered 200, yet there will be no media: accepted and ended immediately, so
    // publish_done follows.
    await withdraw(ends, intent, "internal_error");
    throw err;
  }
  if (await isNameLive(db, intent.name)) {
    await withdraw(ends, intent, "replaced");
    return denied("already_live");
  }
  // The stream was ended, locked or deleted, or its organisation disabled, while the customer was asked.
  await withdraw(ends, intent, "stream_withdrawn");
  const stream = await findStream(db, intent.name);
  return (stream && refusalOfStream(stream, clock.now())) ?? denied("locked_stream");
}

async function replaceRunning(
  { media, publishes }: Pick<GoingLiveDeps, "media" | "publishes">,
  slot: Pick<Intent, "name" | "backup">,
): Promise<void> {
  const running = publishes.live(slot);
  if (running === null) return;
  if (!publishes.isEnding(running)) media().end(running, "replaced", "Replaced by a new publish of the same name");
  await publishes.ended(slot, REPLACEMENT_LIMIT_MS);
}
