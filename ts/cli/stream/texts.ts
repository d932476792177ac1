// What `--title` and `--external-id` say; a space alone clears.
import { ConfigInvalid } from "../../errors.ts";
import { recordChange } from "../../organisation/audit.ts";
import { readExternalId, readTitle, type StreamTexts, setTexts } from "../../organisation/titles/stream-titles.ts";
import type { StreamTable } from "../../store/schema.ts";
import { type AtStore, operator } from "../at-store.ts";
import type { GivenFlags } from "../flags.ts";

/** Throws `InvalidValue`. */
export function textsOf({ title, externalId }: GivenFlags): StreamTexts {
  return {
    ...(typeof title === "string" && { title: readTitle(title) }),
    ...(typeof externalId === "string" && { externalId: readExternalId(externalId) }),
  };
}

/** Sets those given, or neither; each is an entry of the audit log, as by the API. Throws `ConfigInvalid` for none. */
export async function changeTexts({ db, now }: AtStore, stream: StreamTable, texts: StreamTexts): Promise<StreamTable> {
  const { title, externalId } = texts;
  if (title === undefined && externalId === undefined)
    throw new ConfigInvalid("stream set needs --title or --external-id");
  const actor = operator({ id: stream.organisation_id });
  const entry = (action: string, detail: Readonly<Record<string, unknown>>) => ({ action, subject: stream.id, detail });
  return await db.transaction().execute(async (trx) => {
    if (title !== undefined) await recordChange(trx, actor, now, entry("stream.title", { title }));
    if (externalId !== undefined)
      await recordChange(trx, actor, now, entry("stream.external_id", { external_id: externalId }));
    return await setTexts(trx, stream, texts, { seenBy: null, now });
  });
}
