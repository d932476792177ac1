// The open event streams, the polling of what they show once a second, and their limits. While nobody watches nothing
// is polled.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { StoreFailed, TooManyReaders } from "../../errors.ts";
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
const POLL_EVERY_MS = 1_000;
/** A reader's permission is checked again after this many polls. */
const CHECK_EVERY_POLLS = 6;
/** A comment is sent after this many polls. */
const COMMENT_EVERY_POLLS = 15;
/** A reader that has taken nothing for this many polls is disconnected. */
const STUCK_POLLS = 60;

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

/** What is watched in one organisation. */
interface Watched {
  readonly changes: StreamChanges;
  /** Changed streams that some list or page has not been sent yet, by id. */
  readonly unsent: Map<string, ChangedStream>;
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
  polls: number;
  stuckPolls: number;
}

export interface EventsDeps {
  readonly db: Kysely<Schema>;
  readonly measurements: Pick<Measurements, "ofOrganisation" | "ofStream" | "numbersOf">;
  readonly sessions: Pick<LiveSessions, "show" | "players">;
  /** What runs on other nodes; null where there are none. */
  readonly others?: Pick<Others, "rows"> | null;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
}

export class Events {
  readonly #deps: EventsDeps;
  readonly #organisations = new Map<string, Watched>();
  readonly #readers = new Map<Reader, Watching>();
  #timer: NodeJS.Timeout | undefined;
  #polls = 0;
  #stopped = false;

  constructor(deps: EventsDeps) {
    this.#deps = deps;
  }

  /** Throws `TooManyReaders`. */
  open(watcher: Watcher): ReadableStream<Uint8Array> {
    const { organisationId } = watcher;
    const ofOrganisation = [...this.#readers.values()].filter((of) => of.watcher.organisationId === organisationId);
    const isFull = this.#readers.size >= READERS_LIMIT || ofOrganisation.length >= READERS_OF_ORGANISATION_LIMIT;
    if (this.#stopped || isFull) throw new TooManyReaders();
    const channel = this.#channelOf(watcher);
    const reader = openReader({ ready: () => channel.catchUp(reader), gone: () => this.#leave(reader) });
    this.#readers.set(reader, { watcher, channel, polls: 0, stuckPolls: 0 });
    channel.add(reader);
    this.#timer ??= setInterval(() => void this.poll(), POLL_EVERY_MS).unref();
    return reader.body;
  }

  /** Event streams that are open. */
  readers(): number {
    return this.#readers.size;
  }

  /** Ends all streams, and accepts no more. */
  stop(): void {
    this.#stopped = true;
    for (const [reader, { watcher }] of [...this.#readers]) this.#end(reader, watcher);
  }

  #channelOf({ organisationId, scopeTag, stream }: Watcher): Channel {
    const watched = this.#organisations.get(organisationId) ?? this.#watch(organisationId);
    if (stream !== null) {
      const page =
        watched.pages.get(stream.id) ??
        new StreamPage(this.#deps, { organisationId, ...stream }, this.#deps.clock.now());
      watched.pages.set(stream.id, page);
      return page.channel;
    }
    const tag = scopeTag ?? "";
    const known = watched.lists.get(tag);
    if (known !== undefined) return known.channel;
    const list = new SessionList(this.#deps.db, organisationId, scopeTag);
    watched.lists.set(tag, list);
    this.#inTurn(watched, async () => list.send(this.#deps.clock.now(), await this.#rowsOf(organisationId), []));
    return list.channel;
  }

  #watch(organisationId: string): Watched {
    const changes = new StreamChanges(this.#deps.db, organisationId, this.#deps.clock.now());
    const [lists, pages] = [new Map(), new Map()];
    const watched = { changes, unsent: new Map(), lists, pages, turn: Promise.resolve(), isBehind: false };
    this.#organisations.set(organisationId, watched);
    return watched;
  }

  /** What fails is tried again at the next poll. */
  #inTurn(watched: Watched, work: () => Promise<void>): void {
    watched.turn = watched.turn.then(work).catch((err: unknown) => {
      if (!(err instanceof StoreFailed)) this.#deps.log.error({ err }, "events could not be sent");
    });
  }

  /** Polls once and sends what is new; a timer calls it each second while somebody reads. Never rejects. */
  async poll(): Promise<void> {
    this.#polls += 1;
    const turns = [...this.#organisations].map(async ([organisationId, watched]) => {
      if (watched.isBehind) return;
      watched.isBehind = true;
      this.#inTurn(watched, () => this.#send(organisationId, watched));
      await watched.turn;
      watched.isBehind = false;
    });
    await Promise.all([...turns, ...[...this.#readers].map(([reader, watching]) => this.#check(reader, watching))]);
  }

  async #send(organisationId: string, { changes, unsent, lists, pages }: Watched): Promise<void> {
    const at = this.#deps.clock.now();
    // Numbers continue while the store does not answer.
    const found = await changes.poll(at).catch((err: unknown): readonly ChangedStream[] => {
      if (err instanceof StoreFailed) return [];
      throw err;
    });
    for (const stream of found) unsent.set(stream.id, stream);
    const changed = [...unsent.values()];
    const rows = lists.size === 0 ? [] : await this.#rowsOf(organisationId);
    for (const recipient of [...lists.values(), ...pages.values()]) {
      if (recipient instanceof SessionList) await recipient.send(at, rows, changed);
      else await recipient.send(at, changed);
      if (this.#polls % COMMENT_EVERY_POLLS === 0) recipient.channel.comment();
    }
    unsent.clear();
  }

  async #rowsOf(organisationId: string): Promise<readonly LiveRow[]> {
    const remote = this.#deps.others == null ? [] : await this.#deps.others.rows(organisationId);
    return [...this.#deps.measurements.ofOrganisation(organisationId).map(liveRow), ...remote];
  }

  /** Ends a reader that may no longer read, or that has stalled. */
  async #check(reader: Reader, watching: Watching): Promise<void> {
    const { watcher } = watching;
    watching.stuckPolls = reader.isReady() ? 0 : watching.stuckPolls + 1;
    if (watching.stuckPolls >= STUCK_POLLS) return this.#end(reader, watcher);
    watching.polls += 1;
    if (watching.polls % CHECK_EVERY_POLLS !== 0) return;
    const holds = await watcher.holds().catch(() => true);
    if (!holds) this.#end(reader, watcher);
  }

  #end(reader: Reader, { cut }: Watcher): void {
    const isStuck = !reader.isReady();
    reader.end();
    // Otherwise it would end only once all pending data had been read.
    if (isStuck) cut();
  }

  #leave(reader: Reader): void {
    const watching = this.#readers.get(reader);
    if (watching === undefined) return;
    this.#readers.delete(reader);
    watching.channel.remove(reader);
    const { organisationId } = watching.watcher;
    const watched = this.#organisations.get(organisationId);
    for (const group of [watched?.lists, watched?.pages]) {
      for (const [name, { channel }] of group ?? []) if (channel.isEmpty) group?.delete(name);
    }
    if (watched?.lists.size === 0 && watched.pages.size === 0) this.#organisations.delete(organisationId);
    if (this.#readers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
