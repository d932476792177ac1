// Actions on a whole stream, from the list and from its own page: with confirmation where they end something, shown at
// once where that is safe, and reported afterwards.
import { confirm } from "../parts/confirm.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { nameOf, type Stream } from "./records.ts";

/** Receives the record to show: first the expected one, then the service's. */
export type ShowStream = (stream: Stream) => void;

/** Locks the stream, which also ends a running publish. The API's stop and lock are the same to the service, but not to
 *  people. */
export async function lockStream(stream: Stream, show: ShowStream): Promise<void> {
  const name = nameOf(stream);
  const isLive = stream.state === "live";
  const question = {
    title: `Stop ${name}?`,
    text: "The broadcast ends now, and nobody can broadcast to this stream until you unlock it.",
    does: "Stop and lock",
  };
  if (isLive && !(await confirm(question))) return;
  const params = { path: { id: stream.id } };
  const call = () =>
    answerOf(isLive ? api.PUT("/stream/{id}/stop", { params }) : api.PUT("/stream/{id}/lock", { params }));
  const guess = isLive ? null : ({ ...stream, state: "locked" } as const);
  const locked = await changed(stream, guess, call, show);
  if (locked !== null) say(`${name} is locked`, { title: "Unlock", run: () => void unlockStream(locked, show) });
}

export async function unlockStream(stream: Stream, show: ShowStream): Promise<void> {
  const call = () => answerOf(api.PUT("/stream/{id}/unlock", { params: { path: { id: stream.id } } }));
  if ((await changed(stream, null, call, show)) !== null) say(`${nameOf(stream)} can be broadcast to again`);
}

/** Resolves to whether it was deleted. */
export async function deleteStream(stream: Stream, show: ShowStream): Promise<boolean> {
  const name = nameOf(stream);
  const ends = stream.state === "live" ? "The running broadcast ends. " : "";
  const question = {
    title: `Delete ${name}?`,
    text: `${ends}Its name is never used again, its upstreams are forgotten, and links to it stop working. This cannot be undone.`,
    does: "Delete stream",
    typed: name,
  };
  if (!(await confirm(question))) return false;
  const call = () => answerOf(api.DELETE("/stream/{id}", { params: { path: { id: stream.id } } }));
  const gone = await changed(stream, null, call, show);
  if (gone === null) return false;
  say(`${name} is deleted`);
  return true;
}

/** Resolves to whether it was saved. `before`: the tags that the person has changed to `tags`; what somebody else has added
 *  or removed since stays so. */
export async function setTags(
  stream: Stream,
  before: readonly string[],
  tags: readonly string[],
  show: ShowStream,
): Promise<boolean> {
  const params = { path: { id: stream.id } };
  const call = async () => {
    const { tags: present } = await answerOf(api.GET("/stream/{id}", { params }));
    const kept = present.filter((tag) => tags.includes(tag) || !before.includes(tag));
    const added = tags.filter((tag) => !before.includes(tag) && !present.includes(tag));
    return await answerOf(api.PUT("/stream/{id}/tag", { params, body: { tags: [...kept, ...added] } }));
  };
  return (await changed(stream, { ...stream, tags: [...tags] }, call, show)) !== null;
}

/** Saves what differs; "" for none. Resolves to whether everything was saved: another stream may have the id. */
export async function setTexts(
  stream: Stream,
  { title, externalId }: { readonly title: string; readonly externalId: string },
  show: ShowStream,
): Promise<boolean> {
  const params = { path: { id: stream.id } };
  const saveId = () =>
    answerOf(api.PUT("/stream/{id}/external-id", { params, body: { external_id: externalId || null } }));
  const saveTitle = () => answerOf(api.PUT("/stream/{id}/title", { params, body: { title: title || null } }));
  if (externalId !== (stream.external_id ?? "") && (await changed(stream, null, saveId, show)) === null) return false;
  return title === (stream.title ?? "") || (await changed(stream, null, saveTitle, show)) !== null;
}

/** Null: the organisation's setting applies. */
export async function setPublishKey(stream: Stream, publish_key: boolean | null, show: ShowStream): Promise<void> {
  const call = () =>
    answerOf(api.PUT("/stream/{id}/key", { params: { path: { id: stream.id } }, body: { publish_key } }));
  await changed(stream, null, call, show);
}

/** Renews the publish key, with confirmation: every encoder of the stream needs the new one. */
export async function renewPublishKey(stream: Stream, show: ShowStream): Promise<void> {
  const name = nameOf(stream);
  const goesOn = stream.state === "live" ? "The broadcast that is live goes on. " : "";
  const question = {
    title: `Renew the publish key of ${name}?`,
    text: `${goesOn}From now on the present key is refused, and every encoder needs the new one. Links and web tokens keep working.`,
    does: "Renew the key",
  };
  if (!(await confirm(question))) return;
  const call = () => answerOf(api.POST("/stream/{id}/key", { params: { path: { id: stream.id } } }));
  if ((await changed(stream, null, call, show)) !== null) say("The key is renewed: copy the new addresses");
}

async function changed(
  stream: Stream,
  guess: Stream | null,
  call: () => Promise<Stream>,
  show: ShowStream,
): Promise<Stream | null> {
  if (guess !== null) show(guess);
  try {
    const answer = await call();
    show(answer);
    return answer;
  } catch (error) {
    if (guess !== null) show(stream);
    sayProblem(wordsOfError(error));
    return null;
  }
}
