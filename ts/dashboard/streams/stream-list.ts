// The streams shown in a list: loaded page after page while scrolling, live ones first, kept current by the event
// stream. It contains each stream once, even when pages overlap.
import { signal } from "@preact/signals";
import { pastEmptyPages } from "../shell/loaded.ts";
import type { Stream, StreamState } from "./records.ts";
import { nameOf } from "./records.ts";

/** Up to this many streams that went live unnoticed are fetched one by one; for more the list is reloaded. */
const FETCHED_LIMIT = 20;

/** "" and [] select everything. */
export interface StreamFilter {
  readonly state: Exclude<StreamState, "deleted"> | null;
  readonly tags: readonly string[];
  /** Part of the name, the title, the organisation's own id or a tag. */
  readonly search: string;
}

export interface StreamPage {
  readonly streams: readonly Stream[];
  /** null on the last page. */
  readonly next: string | null;
}

export interface StreamSource {
  page(filter: StreamFilter, cursor: string | null, signal: AbortSignal): Promise<StreamPage>;
  /** null: there is no such stream (any more). */
  one(id: string, signal: AbortSignal): Promise<Stream | null>;
}

export class StreamList {
  /** null until the first page has been loaded. */
  readonly rows = signal<readonly Stream[] | null>(null);
  readonly error = signal<unknown>(null);
  readonly isLoading = signal(false);
  readonly hasMore = signal(true);
  readonly #byId = new Map<string, Stream>();
  readonly #controller = new AbortController();
  readonly #source: StreamSource;
  readonly #filter: StreamFilter;
  #cursor: string | null = null;

  constructor(source: StreamSource, filter: StreamFilter) {
    this.#source = source;
    this.#filter = filter;
  }

  /** Loads the next page, if there is one and none is being loaded. */
  async more(): Promise<void> {
    if (this.isLoading.value || !this.hasMore.value) return;
    await this.#load(this.#cursor);
  }

  /** Reloads from the start; the current rows stay until then. */
  async reload(): Promise<void> {
    await this.#load(null);
  }

  /** Applies state changes reported by the service. */
  async statesChanged(changes: readonly { readonly id: string; readonly state: StreamState }[]): Promise<void> {
    const unknown: string[] = [];
    for (const { id, state } of changes) {
      const known = this.#byId.get(id);
      if (known !== undefined) this.#put({ ...known, state });
      else if (state !== "deleted" && (this.#filter.state === null || this.#filter.state === state)) unknown.push(id);
    }
    this.#show();
    await this.#fetch(unknown);
  }

  /** Brings the list up to date after missed events: `live` are the streams that are live at present. */
  async reconcile(live: ReadonlySet<string>): Promise<void> {
    if (this.rows.value === null) return;
    const doubtful = [...this.#byId.values()].filter(({ id, state }) => (state === "live") !== live.has(id));
    const unseen = [...live].filter((id) => !this.#byId.has(id));
    // If live ones are yet to be loaded, the next pages contain them.
    const comesLater = this.hasMore.value && this.rows.value.at(-1)?.state === "live";
    const wantsLive = !comesLater && (this.#filter.state === null || this.#filter.state === "live");
    await this.#fetch([...doubtful.map(({ id }) => id), ...(wantsLive ? unseen : [])]);
  }

  /** Replaces a record by a newer one. */
  put(stream: Stream): void {
    this.#put(stream);
    this.#show();
  }

  close(): void {
    this.#controller.abort();
  }

  async #load(cursor: string | null): Promise<void> {
    this.isLoading.value = true;
    try {
      const { streams, next } = await pastEmptyPages(
        cursor,
        (from) => this.#source.page(this.#filter, from, this.#controller.signal),
        (page) => (page.streams.length === 0 ? page.next : null),
      );
      if (cursor === null) this.#byId.clear();
      for (const stream of streams) this.#byId.set(stream.id, stream);
      this.#cursor = next;
      this.hasMore.value = next !== null;
      this.error.value = null;
      this.#show();
    } catch (error) {
      if (!this.#controller.signal.aborted) this.error.value = error;
    }
    this.isLoading.value = false;
  }

  async #fetch(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    if (ids.length > FETCHED_LIMIT) return await this.reload();
    const { signal } = this.#controller;
    const found = await Promise.all(ids.map((id) => this.#source.one(id, signal).catch(() => undefined)));
    if (signal.aborted) return;
    for (const [index, stream] of found.entries()) {
      if (stream) this.#put(stream);
      else if (stream === null) this.#byId.delete(ids[index] ?? "");
    }
    this.#show();
  }

  #put(stream: Stream): void {
    if (matches(stream, this.#filter)) this.#byId.set(stream.id, stream);
    else this.#byId.delete(stream.id);
  }

  #show(): void {
    this.rows.value = [...this.#byId.values()].sort(liveFirst);
  }
}

/** The same filter as the service's. */
export function matches(stream: Stream, { state, tags, search }: StreamFilter): boolean {
  if (stream.state === "deleted" || (state !== null && stream.state !== state)) return false;
  if (!tags.every((tag) => stream.tags.includes(tag))) return false;
  const wanted = search.toLowerCase();
  const texts = [nameOf(stream), stream.title ?? "", stream.external_id ?? "", ...stream.tags];
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

/** The same order as the service's: live ones, then the newest; all times have the same text format. */
function liveFirst(one: Stream, other: Stream): number {
  const isLive = Number(other.state === "live") - Number(one.state === "live");
  if (isLive !== 0) return isLive;
  if (one.created_at !== other.created_at) return one.created_at < other.created_at ? 1 : -1;
  return one.id < other.id ? 1 : -1;
}
