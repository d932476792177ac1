// Work done every ten seconds for all running publishes: their counters are stored (W8), audio that cannot be
// transcoded is logged, and publishes of disabled organisations are ended.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Media, PublishSnapshot } from "../../media.ts";
import { disabledOf } from "../../store/enabled.ts";
import type { Schema } from "../../store/schema.ts";
import { type Ending, endingOf } from "../ending/ending.ts";
import { type Intent, recordBytes } from "../record.ts";
import { createTranscoderWarnings } from "../transcoder-error.ts";

export function createUpkeep(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "snapshot">;
  readonly clock: { now(): number };
  readonly log: Logger;
  /** Running publishes and those held for a successor. */
  readonly intents: () => readonly Intent[];
  readonly kick: (isMeant: (publish: { readonly intent: Intent }) => boolean, ending: Ending) => boolean;
}): () => Promise<void> {
  const { db, media, clock, log, kick } = deps;
  const warnOfTranscoders = createTranscoderWarnings(log);
  let isRunning = false;
  return async () => {
    const intents = deps.intents();
    const snapshots = intents.map(({ clientId }) => media().snapshot(clientId)).filter((of) => of !== null);
    warnOfTranscoders(snapshots);
    // A store that is slow, or does not answer, would get ever more of it.
    if (isRunning) return;
    isRunning = true;
    await tend(intents, snapshots).finally(() => {
      isRunning = false;
    });
  };

  async function tend(intents: readonly Intent[], snapshots: readonly PublishSnapshot[]): Promise<void> {
    if (snapshots.length > 0) await recordBytes(db, snapshots, clock.now());
    const organisations = new Set(intents.map(({ organisationId }) => organisationId));
    if (organisations.size === 0) return;
    for (const id of await disabledOf(db, [...organisations], clock.now())) {
      log.warn({ organisation: id }, "organisation is no longer enabled: its publishes end");
      kick(({ intent }) => intent.organisationId === id, endingOf("ended_by_operator"));
    }
  }
}
