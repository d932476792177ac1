// Chooses which of a database's servers is used: the one that accepts writes. It changes when a standby is promoted. A
// former primary that comes back unchanged accepts writes, too: the timeline, which a promotion increments, tells them
// apart.
import type { ClientBase } from "pg";
import { StoreFailed } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";
import { type DatabaseServer, type DatabaseUrl, parseDatabaseUrl } from "./database-url.ts";

/** How long the result of a failed search is repeated before the servers are queried again, ms. */
const PAUSE_MS = 200;
/** SQLSTATEs of services that are compatible with PostgreSQL but expose no write-ahead log: insufficient_privilege,
 *  feature_not_supported, undefined_function, object_not_in_prerequisite_state. */
const NO_TIMELINE = new Set(["42501", "0A000", "42883", "55000"]);

/** Queries one server, on a connection of its own; rejects when it does not answer in time. */
export type Probe = (server: DatabaseServer) => Promise<Standing>;

/** The state that a server reports. */
export interface Standing {
  /** Why it accepts no writes; null when it does. */
  readonly refusal: "is a standby" | "is read-only" | null;
  /** Timeline of its write-ahead log; 0 when unknown. */
  readonly timeline: number;
  /** Whether its commits wait for a standby. */
  readonly isSynchronous: boolean;
}

export class Servers {
  readonly #url: DatabaseUrl;
  /** The last usable server; null while it has to be searched for. */
  #known: DatabaseServer | null;
  #epoch = 0;
  /** Highest timeline of any server used so far. */
  #timeline = 0;
  #search: Promise<void> | null = null;
  /** The search for a server that has taken the place of `current`; all silent connections share one. */
  #replacement: Promise<DatabaseServer | null> | null = null;

  constructor(url: DatabaseUrl) {
    this.#url = url;
    this.#known = this.hasSeveral ? null : this.#first;
  }

  get hasSeveral(): boolean {
    return this.#url.servers.length > 1;
  }

  /** Whether a server that accepts no writes is refused. */
  get mustBeWritable(): boolean {
    return this.#url.mustBeWritable;
  }

  get #first(): DatabaseServer {
    const [first] = this.#url.servers;
    if (first === undefined) throw new Error("a database URL names a server");
    return first;
  }

  /** The server for new connections: the result of `find`, until it is doubted. */
  get current(): DatabaseServer {
    return this.#known ?? this.#first;
  }

  /** Increases when existing connections must no longer be used. */
  get epoch(): number {
    return this.#epoch;
  }

  /** A connection made in `epoch` failed in a way that puts all connections of that epoch in doubt. */
  doubt(epoch: number): void {
    if (epoch !== this.#epoch) return; // already handled
    this.#epoch += 1;
    if (this.hasSeveral) this.#known = null;
  }

  /** Resolves when `current` is usable, immediately unless it is in doubt. Concurrent callers share one
   *  search. Rejects with `StoreFailed`, which says what each server answered. */
  async find(probe: Probe): Promise<void> {
    if (this.#known !== null) return;
    if (this.#search === null) {
      const search = this.#ask(probe);
      const over = (): void => {
        if (this.#search === search) this.#search = null;
      };
      search.then(over, () => setTimeout(over, PAUSE_MS).unref());
      this.#search = search;
    }
    await this.#search;
  }

  /** Whether another server than `server` is the current one now: one with a newer timeline is, at once. */
  async isReplaced(server: DatabaseServer, probe: Probe): Promise<boolean> {
    if (!this.hasSeveral) return false;
    if (this.#known !== server) return this.#known !== null;
    const others = this.#url.servers.filter((other) => other !== server);
    this.#replacement ??= this.#promoted(others, probe).finally(() => {
      this.#replacement = null;
    });
    const promoted = await this.#replacement;
    if (promoted === null || this.#known !== server) return this.#known !== null && this.#known !== server;
    this.#epoch += 1;
    this.#known = promoted;
    return true;
  }

  /** The first of `servers` to answer that it has been promoted since the last known timeline. null: none has. */
  #promoted(servers: readonly DatabaseServer[], probe: Probe): Promise<DatabaseServer | null> {
    const known = this.#timeline;
    if (known === 0) return Promise.resolve(null);
    const asked = servers.map(async (server) => {
      const standing = await probe(server);
      if (standing.refusal !== null || standing.timeline <= known) throw new StoreFailed("is not promoted");
      this.check(standing);
      return server;
    });
    return Promise.any(asked).catch(() => null);
  }

  /** Throws unless a server in this state may be used. */
  check({ refusal, timeline }: Standing): void {
    if (this.mustBeWritable && refusal !== null) throw new StoreFailed(refusal);
    if (timeline !== 0 && timeline < this.#timeline) {
      throw new StoreFailed(`is a former primary (timeline ${timeline}, another server has ${this.#timeline})`);
    }
    this.#timeline = Math.max(this.#timeline, timeline);
  }

  /** Queries all servers and chooses the first one of the highest timeline; a promoted one without waiting for those
   *  that do not answer. */
  async #ask(probe: Probe): Promise<void> {
    const asked = new Map<DatabaseServer, Promise<Standing>>();
    const askOnce: Probe = (server) => {
      const standing = asked.get(server) ?? probe(server);
      asked.set(server, standing);
      return standing;
    };
    const all = answersOf(this.#url.servers, askOnce);
    const promoted = this.#promoted(this.#url.servers, askOnce);
    const first = await Promise.race([promoted, all.then(() => null)]);
    if (first !== null) {
      this.#known = first;
      return;
    }
    const answers = [...(await all)];
    const refusals = new Map<DatabaseServer, string>();
    // Sorting is stable, so the preferred order is kept among equals.
    for (const { server, standing, fault } of answers.sort((a, b) => timelineOf(b) - timelineOf(a))) {
      try {
        if (standing === null) throw new StoreFailed(`does not answer (${fault})`);
        this.check(standing);
        this.#known = server;
        return;
      } catch (error) {
        refusals.set(server, reasonOf(error));
      }
    }
    const each = this.#url.servers.map((server) => `${server.address} ${refusals.get(server)}`);
    throw new StoreFailed(`none of the servers can be used: ${each.join("; ")}`);
  }
}

export interface ServerAnswer {
  readonly server: DatabaseServer;
  /** null when it did not answer; `fault` then says why. */
  readonly standing: Standing | null;
  readonly fault: string;
}

/** Queries all at the same time. */
export async function answersOf(servers: readonly DatabaseServer[], probe: Probe): Promise<readonly ServerAnswer[]> {
  return await Promise.all(
    servers.map(async (server) => {
      try {
        return { server, standing: await probe(server), fault: "" };
      } catch (error) {
        return { server, standing: null, fault: reasonOf(error) };
      }
    }),
  );
}

const timelineOf = ({ standing }: ServerAnswer): number => standing?.timeline ?? -1;

/** Queries the server of a connection. */
export async function standingOf(client: Pick<ClientBase, "query">): Promise<Standing> {
  const ask = async (timeline: string): Promise<Standing> => {
    const { rows } = await client.query<{ standby: string; readonly: string; standbys: string; timeline: string }>(
      `select pg_is_in_recovery()::text as standby, current_setting('transaction_read_only') as readonly,
        current_setting('synchronous_standby_names') as standbys, ${timeline} as timeline`,
    );
    const [row] = rows;
    const refusal = row?.standby === "true" ? "is a standby" : row?.readonly === "on" ? "is read-only" : null;
    const isSynchronous = (row?.standbys ?? "") !== "";
    return { refusal, timeline: Number.parseInt(row?.timeline ?? "0", 16), isSynchronous };
  };
  try {
    // The name of a log file begins with its timeline, eight hexadecimal digits; a standby does not report it.
    return await ask("case when pg_is_in_recovery() then '0' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end");
  } catch (error) {
    if (!NO_TIMELINE.has((error as { readonly code?: string }).code ?? "")) throw error;
    return await ask("'0'");
  }
}

const known = new Map<string, Servers>();

/** The shared state of the servers of a database: one object per URL in this process. Throws as `parseDatabaseUrl`
 *  does. */
export function serversOf(databaseUrl: string): Servers {
  const servers = known.get(databaseUrl) ?? new Servers(parseDatabaseUrl(databaseUrl));
  known.set(databaseUrl, servers);
  return servers;
}
