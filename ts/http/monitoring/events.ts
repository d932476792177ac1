// The open event streams, the polling of what they show once a second, and their limits. While nobody watches nothing
// is polled.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { TooManyReaders } from "../../errors/too-many-readers.ts";
import { StoreFailed } from "../../errors.ts";
import type { LiveSessions } from "../../publish/live-sessions.ts";
import type { Measurements } from "../../publish/monitoring/measurements.ts";
import type { Schema, StreamState } from "../../store/schema.ts";
import type { Others } from "../cluster/others.ts";
import type { Channel } from "./channel.ts";
import { type LiveRow, liveRow } from "./live-row.ts";
import { openReader, type Reader } from "./reader.ts";
import { SessionList } from "./session-list.ts";
import { type ChangedStream, StreamChanges } from "./stream-changes.ts";
import { StreamPage } from "./stream-page.ts";

/** Event streams of one organisation, and of all organisations. */
export const READERS_OF_ORGANISATION_LIMIT = 100;
export const READERS_LIMIT = 1_000;
/** Polling interval, ms. The constants below count polls: a clock may be set back. */
const LOOK_EVERY_MS = 1_000;
/** A reader's permission is checked again after this many polls. */
const CHECK_EVERY_LOOKS = 6;
/** A comment is sent after this many polls. */
const COMMENT_EVERY_LOOKS = 15;
/** A reader that has taken nothing for this many polls is disconnected. */
const STUCK_LOOKS = 60;

/** A reader and what it may see. */
export interface Watcher {
  readonly organisationId: string;
  /** Only streams with this tag are visible; null: all. */
  readonly scopeTag: string | null;
  /** The stream whose page is shown, which the watcher may see; null: all running publishes. */
  readonly stream: { readonly id: string; readonly state: StreamState } | null;
  /** Whether it may continue reading. Called every six seconds; a rejection decides nothing, and the stream
   *  continues. */
  holds(): Promise<boolean>;
  /** Breaks the connection of a reader that has stalled. */
  cut(): void;
}

export interface Events {
  /** Throws `TooManyReaders`. */
  open(watcher: Watcher): ReadableStream<Uint8Array>;
  /** Event streams that are open. */
  readers(): number;
  /** Polls once and sends what is new; a timer calls it each second while somebody reads. Never rejects. */
  look(): Promise<void>;
  /** Ends all streams, and accepts no more. */
  stop(): void;
}

/** What is watched in one organisation. */
interface Watched {
  readonly changes: StreamChanges;
  /** By tag; "" for no tag. */
  readonly lists: Map<string, SessionList>;
  readonly pages: Map<string, StreamPage>;
  /** Serialises the polls of this organisation. */
  turn: Promise<void>;
  isBehind: boolean;
}

interface Watching {
  readonly watcher: Watcher;
  readonly channel: Channel;
  looks: number;
  stuckLooks: number;
}

export function createEvents(deps: {
  readonly db: Kysely<Schema>;
  readonly measurements: Pick<Measurements, "ofOrganisation" | "ofStream" | "numbersOf">;
  readonly sessions: Pick<LiveSessions, "show" | "players">;
  /** What runs on other nodes; null where there are none. */
  readonly others?: Pick<Others, "rows"> | null;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}): Events {
  const { db, measurements, clock, log } = deps;
  const organisations = new Map<string, Watched>();
  const readers = new Map<Reader, Watching>();
  let timer: NodeJS.Timeout | undefined;
  let looks = 0;
  let stopped = false;

  return {
    open(watcher) {
      const { organisationId } = watcher;
      const ofOrganisation = [...readers.values()].filter((of) => of.watcher.organisationId === organisationId);
      const isFull = readers.size >= READERS_LIMIT || ofOrganisation.length >= READERS_OF_ORGANISATION_LIMIT;
      if (stopped || isFull) throw new TooManyReaders();
      const channel = channelOf(watcher);
      const reader = openReader({ ready: () => channel.catchUp(reader), gone: () => leave(reader) });
      readers.set(reader, { watcher, channel, looks: 0, stuckLooks: 0 });
      channel.add(reader);
      timer ??= setInterval(() => void look(), LOOK_EVERY_MS).unref();
      return reader.body;
    },
    readers: () => readers.size,
    look,
    stop() {
      stopped = true;
      for (const [reader, { watcher }] of [...readers]) end(reader, watcher);
    },
  };

  function channelOf({ organisationId, scopeTag, stream }: Watcher): Channel {
    const watched = organisations.get(organisationId) ?? watch(organisationId);
    if (stream !== null) {
      const page = watched.pages.get(stream.id) ?? new StreamPage(deps, { organisationId, ...stream }, clock.now());
      watched.pages.set(stream.id, page);
      return page.channel;
    }
    const tag = scopeTag ?? "";
    const known = watched.lists.get(tag);
    if (known !== undefined) return known.channel;
    const list = new SessionList(db, organisationId, scopeTag);
    watched.lists.set(tag, list);
    inTurn(watched, async () => list.tell(clock.now(), await rowsOf(organisationId), []));
    return list.channel;
  }

  function watch(organisationId: string): Watched {
    const changes = new StreamChanges(db, organisationId, clock.now());
    const watched = { changes, lists: new Map(), pages: new Map(), turn: Promise.resolve(), isBehind: false };
    organisations.set(organisationId, watched);
    return watched;
  }

  /** What fails is tried again at the next poll. */
  function inTurn(watched: Watched, work: () => Promise<void>): void {
    watched.turn = watched.turn.then(work).catch((err: unknown) => {
      if (!(err instanceof StoreFailed)) log.error({ err }, "events could not be sent");
    });
  }

  async function look(): Promise<void> {
    looks += 1;
    const turns = [...organisations].map(async ([organisationId, watched]) => {
      if (watched.isBehind) return;
      watched.isBehind = true;
      inTurn(watched, () => tell(organisationId, watched));
      await watched.turn;
      watched.isBehind = false;
    });
    await Promise.all([...turns, ...[...readers].map(([reader, watching]) => check(reader, watching))]);
  }

  async function tell(organisationId: string, { changes, lists, pages }: Watched): Promise<void> {
    const at = clock.now();
    // Numbers continue while the store does not answer.
    const changed = await changes.look(at).catch((err: unknown): readonly ChangedStream[] => {
      if (err instanceof StoreFailed) return [];
      throw err;
    });
    const rows = lists.size === 0 ? [] : await rowsOf(organisationId);
    for (const told of [...lists.values(), ...pages.values()]) {
      if (told instanceof SessionList) await told.tell(at, rows, changed);
      else await told.tell(at, changed);
      if (looks % COMMENT_EVERY_LOOKS === 0) told.channel.comment();
    }
  }

  async function rowsOf(organisationId: string): Promise<readonly LiveRow[]> {
    const remote = deps.others == null ? [] : await deps.others.rows(organisationId);
    return [...measurements.ofOrganisation(organisationId).map(liveRow), ...remote];
  }

  /** Ends a reader that may no longer read, or that has stalled. */
  async function check(reader: Reader, watching: Watching): Promise<void> {
    const { watcher } = watching;
    watching.stuckLooks = reader.isReady() ? 0 : watching.stuckLooks + 1;
    if (watching.stuckLooks >= STUCK_LOOKS) return end(reader, watcher);
    watching.looks += 1;
    if (watching.looks % CHECK_EVERY_LOOKS !== 0) return;
    const holds = await watcher.holds().catch(() => true);
    if (!holds) end(reader, watcher);
  }

  function end(reader: Reader, { cut }: Watcher): void {
    const isStuck = !reader.isReady();
    reader.end();
    // Otherwise it would end only once all pending data had been read.
    if (isStuck) cut();
  }

  function leave(reader: Reader): void {
    const watching = readers.get(reader);
    if (watching === undefined) return;
    readers.delete(reader);
    watching.channel.remove(reader);
    const { organisationId } = watching.watcher;
    const watched = organisations.get(organisationId);
    for (const told of [watched?.lists, watched?.pages]) {
      for (const [name, { channel }] of told ?? []) if (channel.isEmpty) told?.delete(name);
    }
    if (watched?.lists.size === 0 && watched.pages.size === 0) organisations.delete(organisationId);
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }
}
