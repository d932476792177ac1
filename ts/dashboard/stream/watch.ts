// The state of one stream while its page is open: its record, its running publish, and its measurements. The history is
// loaded once per publish, then a point each second arrives by the event stream.
import { computed, signal } from "@preact/signals";
import { answerOf, api } from "../shell/client.ts";
import { openEvents } from "../streams/event-stream.ts";
import type { Finding, Numbers, Session, SessionUpstream, Stream, StreamState } from "../streams/records.ts";
import { Series } from "./series.ts";

/** How often data that the events lack is loaded: codecs, lost frames, players. More often until the codecs are
 *  known. */
const SESSION_EVERY_MS = 5_000;
const TRACKS_EVERY_MS = 1_000;

/** The event `stream`. */
interface StateEvent {
  readonly at: number;
  readonly state: StreamState;
  readonly session: (Session & { readonly numbers: Numbers }) | null;
}

/** The event `numbers`. */
interface NumbersEvent {
  readonly at: number;
  readonly client_id: number;
  readonly numbers: Numbers;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly players: number;
  readonly upstreams?: readonly SessionUpstream[];
  readonly findings?: readonly Finding[];
}

interface EndedEvent {
  readonly client_id: number;
  readonly reason: string;
}

export class StreamWatch {
  readonly stream = signal<Stream | null>(null);
  readonly error = signal<unknown>(null);
  /** null: no publish is running, as far as is known. */
  readonly session = signal<Session | null>(null);
  readonly numbers = signal<Numbers | null>(null);
  readonly players = signal(0);
  readonly series = signal(new Series());
  /** Time of the latest event, epoch ms on the clock of the service. */
  readonly at = signal(0);
  /** Increases when a publish began or ended, so that the list of past ones is reloaded. */
  readonly changes = signal(0);
  readonly clientId = computed(() => this.session.value?.client_id ?? null);
  readonly connection;
  readonly #id: string;
  readonly #controller = new AbortController();
  readonly #events;
  /** `at` of the latest load of the running publish. */
  #loadedAt = 0;

  constructor(id: string) {
    this.#id = id;
    this.#events = openEvents(`/organisation/events?${new URLSearchParams({ stream: id })}`, {
      stream: (event: StateEvent) => this.#stateCame(event),
      numbers: (event: NumbersEvent) => this.#numbersCame(event),
      ended: (event: EndedEvent) => this.#ended(event),
    });
    this.connection = this.#events.state;
    void this.load();
  }

  /** Reloads the stream's record. */
  async load(): Promise<void> {
    try {
      const params = { path: { id: this.#id } };
      this.show(await answerOf(api.GET("/stream/{id}", { params, signal: this.#controller.signal })));
      this.error.value = null;
    } catch (error) {
      if (!this.#controller.signal.aborted) this.error.value = error;
    }
  }

  show(stream: Stream): void {
    this.stream.value = stream;
  }

  /** Reloads the running publish, mainly for its players. */
  async loadSession(): Promise<void> {
    const clientId = this.clientId.value;
    if (clientId === null) return;
    const params = { path: { client_id: clientId } };
    const call = api.GET("/session/{client_id}", { params, signal: this.#controller.signal });
    const session = await answerOf(call).catch(() => null);
    if (session !== null && this.clientId.value === session.client_id) this.showSession(session);
  }

  showSession(session: Partial<Session>): void {
    if (this.session.value !== null) this.session.value = { ...this.session.value, ...session };
  }

  close(): void {
    this.#controller.abort();
    this.#events.close();
  }

  #stateCame({ at, state, session }: StateEvent): void {
    this.at.value = at;
    if (this.stream.value !== null) this.stream.value = { ...this.stream.value, state };
    const isNew = session?.client_id !== this.clientId.value;
    this.session.value = session;
    this.numbers.value = session?.numbers ?? null;
    this.players.value = session?.players.length ?? 0;
    if (!isNew) return;
    this.changes.value += 1;
    if (session === null) return;
    this.series.value = new Series();
    void this.#loadHistory(session.client_id);
  }

  #numbersCame({ at, client_id, numbers, bytes_in, bytes_out, players, upstreams, findings }: NumbersEvent): void {
    if (client_id !== this.clientId.value) return;
    this.at.value = at;
    this.numbers.value = numbers;
    this.series.value = this.series.value.with(at, numbers);
    this.showSession({
      bytes_in,
      bytes_out,
      ...(upstreams === undefined ? {} : { upstreams: [...upstreams] }),
      ...(findings === undefined ? {} : { findings: [...findings] }),
    });
    const { tracks } = this.session.value ?? { tracks: { video: null, audio: null } };
    const isWhole = tracks.video !== null && tracks.audio !== null;
    const isDue = at - this.#loadedAt >= (isWhole ? SESSION_EVERY_MS : TRACKS_EVERY_MS);
    const isOther = players !== this.players.value;
    this.players.value = players;
    if (!isDue && !isOther) return;
    this.#loadedAt = at;
    void this.loadSession();
  }

  #ended({ client_id }: EndedEvent): void {
    if (client_id !== this.clientId.value) return;
    this.session.value = null;
    this.numbers.value = null;
    this.changes.value += 1;
  }

  async #loadHistory(clientId: number): Promise<void> {
    const params = { path: { client_id: clientId } };
    const call = api.GET("/session/{client_id}/history", { params, signal: this.#controller.signal });
    const history = await answerOf(call).catch(() => null);
    if (history !== null && this.clientId.value === clientId) {
      this.series.value = this.series.value.after(Series.of(history));
    }
  }
}
