// `headgate stream …`: works on the store, whether the service runs or not. Only to end a running publish it calls the
// service, which alone can do that.
import { ConfigInvalid, ServiceError } from "../../errors.ts";
import { changed, recordChange } from "../../organisation/audit.ts";
import { listStreams } from "../../organisation/reads/stream-list.ts";
import {
  deleteStream,
  lockStream,
  renewPublishKey,
  TAG_LENGTH_LIMIT,
  TAGS_LIMIT,
  unlockStream,
} from "../../organisation/streams.ts";
import { createTitledStream, givenTexts } from "../../organisation/titles/stream-titles.ts";
import type { StreamTable } from "../../store/schema.ts";
import { forgetStream } from "../../token/revocations.ts";
import { ask } from "../asking.ts";
import { type AtStore, atStore, chosenOrganisation, operator } from "../at-store.ts";
import { STREAM_VERBS } from "../command-flags.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table } from "../output.ts";
import { unknownVerb, wanted } from "../words.ts";
import { type End, endOf, refusedWords } from "./end-flags.ts";
import { recordOf, recordsOf } from "./records.ts";
import { printPublishes, printRefusals } from "./refusals.ts";
import { changeTexts, textsOf } from "./texts.ts";

/** Most streams listed: more than anybody reads, and still manageable for a terminal and a script. */
const LIST_LIMIT = 100_000;

/** The change of a stream that each verb makes in the store, and the API call that does the same and also ends a
 *  running publish. */
const CHANGES = {
  stop: { move: lockStream, action: "stream.stop", call: ["PUT", "/stop"], done: "is stopped: locked until unlock" },
  lock: { move: lockStream, action: "stream.lock", call: ["PUT", "/lock"], done: "is locked" },
  unlock: { move: unlockStream, action: "stream.unlock", call: null, done: "is unlocked" },
  rm: {
    move: deleteStream,
    action: "stream.delete",
    call: ["DELETE", ""],
    done: "is deleted; its name will not be used again",
  },
} as const;

export async function runStream(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, which] = words;
  await atStore(flags, async (at) => {
    const record = (stream: StreamTable) => recordOf(at, flags, stream);
    switch (verb) {
      case "ls": {
        const organisation = await chosenOrganisation(at, flags);
        const filter = { quantity: LIST_LIMIT, state: null, tags: [] };
        const { streams } = await listStreams(at.db, organisation, filter);
        const rows = streams.map(({ name, state, id, tags, title, external_id }) => [
          ...[name, state, id, title, external_id],
          tagsText(tags),
        ]);
        return print(
          flags,
          flags.json === true && (await recordsOf(at, flags, streams)),
          table([["name", "state", "id", "title", "external id", "tags"], ...rows]),
        );
      }
      case "create": {
        const organisation = await chosenOrganisation(at, flags);
        const tags = tagsOf(flags);
        const { title = null, externalId = null } = textsOf(flags);
        const change = (made: StreamTable) => ({
          action: "stream.create",
          subject: made.id,
          detail: { name: made.name, tags, ...givenTexts(made) },
        });
        const given = { tags, title, externalId, seenBy: null, nameRandom: at.config.nameRandom, now: at.now };
        const stream = await changed(at.db, operator(organisation), at.now, change, (trx) =>
          createTitledStream(trx, organisation, given),
        );
        return print(flags, await record(stream), [stream.name]);
      }
      case "show": {
        const stream = await record(await find(at, flags, which));
        const { ingest, playout, ...rest } = stream;
        return print(flags, stream, [
          `name        ${ingest.rtmp.streamname}`,
          `id          ${rest.id}`,
          `title       ${rest.title ?? "–"}`,
          `external id ${rest.external_id ?? "–"}`,
          `state       ${rest.state}`,
          `tags        ${rest.tags.join(", ")}`.trimEnd(),
          `created     ${rest.created_at}`,
          `changed     ${rest.updated_at}`,
          `RTMP        ${ingest.rtmp.url}/${ingest.rtmp.stream_key}`,
          `WHIP        ${ingest.whip.url}`,
        ]);
      }
      case "set": {
        const stream = await changeTexts(at, await find(at, flags, which), textsOf(flags));
        return print(flags, await record(stream), [`${stream.name} is changed.`]);
      }
      case "publishes":
      case "refusals": {
        const stream = await find(at, flags, which);
        if (verb === "publishes") return await printPublishes(flags, at.db, stream);
        const whose = { organisationId: stream.organisation_id, streamId: stream.id, unknown: false };
        return await printRefusals(flags, at.db, whose);
      }
      case "key": {
        const stream = await find(at, flags, which);
        const row = flags.renew === true ? await renewKey(at, stream) : stream;
        const { name } = row;
        const shown = await record(row);
        const { key, rtmp } = shown.ingest;
        const none = `Publishes of ${name} need no publish key: see PUT /stream/{id}/key and publish_key in /organisation/settings.`;
        return print(flags, shown, [key === null ? none : rtmp.stream_key]);
      }
      case "switch": {
        const stream = await find(at, flags, which);
        const to = words[2] === undefined ? {} : { to: clientIdOf(words[2]) };
        const answer = await ask(flags, "PUT", `/stream/${stream.id}/switch`, to);
        const { client_id, on_air } = answer as { readonly client_id: number; readonly on_air: boolean };
        const when = on_air ? "is on air" : "takes over at its next keyframe";
        return print(flags, answer, [`Publish ${client_id} of ${stream.name} ${when}.`]);
      }
      case "stop":
      case "lock":
      case "unlock":
      case "rm": {
        const stream = await find(at, flags, which);
        const end = endOf(flags);
        if (end !== undefined) {
          const answer = await changeByService(flags, stream, verb, end);
          return print(flags, answer, [`${stream.name} is stopped${refusedWords(end)}.`]);
        }
        const row = await changeAtStore(at, stream, verb);
        const answer = row === null ? await changeByService(flags, stream, verb) : await record(row);
        return print(flags, answer, [`${stream.name} ${CHANGES[verb].done}.`]);
      }
      default:
        throw unknownVerb("stream", verb, STREAM_VERBS);
    }
  });
}

async function renewKey({ db, now }: AtStore, stream: StreamTable): Promise<StreamTable> {
  const change = { action: "stream.key", subject: stream.id };
  const actor = operator({ id: stream.organisation_id });
  return await changed(db, actor, now, change, (trx) => renewPublishKey(trx, stream, now));
}

/** Null while a publish of the stream runs that `verb` would have to end. */
async function changeAtStore(
  { db, now }: AtStore,
  stream: StreamTable,
  verb: keyof typeof CHANGES,
): Promise<StreamTable | null> {
  const { move, action, call } = CHANGES[verb];
  return await db.transaction().execute(async (trx) => {
    const publish = trx.selectFrom("publish").select("client_id").where("stream_id", "=", stream.id);
    const running = await publish.where("state", "=", "live").executeTakeFirst();
    if (running !== undefined && call !== null) return null;
    const change = { action, subject: stream.id, detail: { from: stream.state } };
    await recordChange(trx, operator({ id: stream.organisation_id }), now, change);
    if (move === deleteStream) await forgetStream(trx, stream.name, now);
    return await move(trx, stream, now);
  });
}

async function changeByService(
  flags: GivenFlags,
  stream: StreamTable,
  verb: keyof typeof CHANGES,
  body?: End,
): Promise<unknown> {
  const [method, path] = CHANGES[verb].call ?? ["GET", ""];
  try {
    return await ask(flags, method, `/stream/${stream.id}${path}`, body);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (body !== undefined) throw error;
    const message = `${stream.name} is live, and only the running service can end its publish, but it did not:\n${error.message}`;
    throw Object.assign(error, { message });
  }
}

/** Finds a stream by name or id, both of which are unique; in the organisation of `--organisation` if given. */
async function find(at: AtStore, flags: GivenFlags, which: string | undefined): Promise<StreamTable> {
  const word = wanted(which, "the stream's name or id");
  const organisation = typeof flags.organisation === "string" ? await chosenOrganisation(at, flags) : null;
  const stream = await at.db
    .selectFrom("stream")
    .selectAll()
    .where((eb) => eb.or([eb("id", "=", word), eb("name", "=", word)]))
    .where("state", "!=", "deleted")
    .executeTakeFirst();
  if (stream === undefined || (organisation !== null && stream.organisation_id !== organisation.id)) {
    const owner = organisation === null ? "" : ` of ${organisation.name}`;
    throw new ConfigInvalid(`there is no stream ${word}${owner}: headgate stream ls`);
  }
  return stream;
}

/** The client id of a publish: `headgate sessions ls` shows them. */
function clientIdOf(word: string): number {
  if (!/^\d{1,16}$/.test(word)) throw new ConfigInvalid(`${word} is not a client id: headgate sessions ls`);
  return Number(word);
}

function tagsOf({ tag }: GivenFlags): readonly string[] {
  if (typeof tag !== "string") return [];
  const tags = tag.split(",").map((each) => each.trim());
  if (tags.length > TAGS_LIMIT) throw new ConfigInvalid(`--tag takes at most ${TAGS_LIMIT} tags`);
  if (tags.some((each) => each === "" || [...each].length > TAG_LENGTH_LIMIT)) {
    throw new ConfigInvalid(`--tag: each tag must have 1 to ${TAG_LENGTH_LIMIT} characters`);
  }
  return tags;
}

const tagsText = (tags: string) => (JSON.parse(tags) as readonly string[]).join(", ");
