// Every publish of this node, from before its customer is asked until its end is in the store: the names they occupy
// (W20), and the indexes to find them by. No I/O, no policy. Publishes of other nodes are behind `ts/cluster`.
import type { Place } from "../capacity/capacity.ts";
import { inTime } from "../in-time.ts";
import type { Upstream } from "../media.ts";
import { step } from "../step-times.ts";
import type { TokenClaims } from "../token/tokens.ts";
import type { Ending } from "./ending/ending.ts";
import type { Intent } from "./record.ts";
import type { UpstreamNames } from "./upstreams/deployment-upstreams.ts";

/** A publish before it runs. */
export interface AskedPublish {
  /** What the customer was sent, and where; its `webhook` is null when nobody was asked. */
  readonly intent: Intent;
  /** Claims of its web token; null when there was none. */
  readonly claims: TokenClaims | null;
}

export interface AllowedPublish extends AskedPublish {
  readonly clientId: number;
  /** The operator's upstreams for this publish, and the stream's. */
  readonly upstreams: readonly Upstream[];
  /** The customer's labels of the stream's upstreams, by id. */
  readonly upstreamLabels: ReadonlyMap<string, string | null>;
  /** The bitrate its sender is asked to stay below where the protocol can ask, kbit/s; 0 is no limit. */
  readonly maxBitrateKbps: number;
  /** How long its upstreams and players are held when its publisher is lost, ms. */
  readonly holdMs: number;
  /** How long its RTMP publisher may send nothing before it counts as lost, ms; null: 15 s (W19). */
  readonly silenceMs: number | null;
  /** Epoch ms. */
  readonly acceptedAt: number;
  /** The capacity of this node it reserves until its load is measured. */
  readonly place: Place;
}

/** A publish before the media core has it. */
export interface StartingPublish extends AllowedPublish {
  readonly protocol: Intent["protocol"];
  /** The id in its WHIP session's URL, which is a capability: never logged. Null for RTMP. */
  readonly session: string | null;
}

/** A publish from its acceptance to its end. */
export interface RunningPublish extends StartingPublish {
  /** The lost publish whose upstreams and players it took over; null for none, or before that is known. */
  continues: number | null;
  /** Whether upstreams and players receive it; false: it is on standby for the other one of its stream. */
  onAir: boolean;
  /** Upstreams added while it, or the publish it continues, ran: by id. */
  readonly addedUpstreams: Map<string, UpstreamNames>;
  /** A limit set while it runs, kbit/s, besides `maxBitrateKbps`; 0 for none. */
  ownLimitKbps: number;
}

/** A name reserved for one request until that is decided. */
export interface Reservation {
  /** The customer is about to be asked: from here on the publish can be stopped. */
  ask(publish: AskedPublish): void;
  /** The request was denied; a running publish of the name is untouched. */
  release(): void;
  /** The request was allowed; the name belongs to its publish until `freeName`. */
  settle(): void;
}

interface Live extends RunningPublish {
  /** Called when it has ended. */
  readonly ended: (() => void)[];
  isEnding: boolean;
}

interface NameUse {
  readonly organisationId: string;
  /** Client id of the running publish, null while the first one is being decided. */
  live: number | null;
  /** Another publish request of this name is being decided. */
  pending: boolean;
  /** Called when the running publish has ended. */
  ended: (() => void)[];
  /** Settles when the end of the last one is in the store, or could not be recorded. */
  recorded: Promise<unknown>;
}

/** Each name has two slots: one for a publish, and one for its backup. */
type Slot = Pick<Intent, "name" | "backup">;

/** At most one pending request and one running publish per slot. */
export interface Publishes {
  /** Reserves a slot of one of the organisation's streams for a request; null when another request has it. */
  reserve(slot: Slot, organisationId: string): Reservation | null;
  /** Names of an organisation with a running or starting publish, except `except`. A publish and its backup count
   *  once. */
  countOf(organisationId: string, except: string): number;
  /** Client id of the running publish of a slot, or null. */
  live(slot: Slot): number | null;
  /** The running publish in the other slot of the name: the backup of a publish, or the publish of a backup. */
  beside(slot: Slot): RunningPublish | undefined;
  /** The decision about an allowed publish is over: the ending when it was stopped meanwhile, else null. */
  answered(clientId: number): Ending | null;
  start(publish: RunningPublish): void;
  /** Marks a publish as ended; undefined when it never ran. Its name is taken until `freeName`. */
  end(clientId: number): RunningPublish | undefined;
  /** Frees the name of an ended publish; no effect when another publish of the name already runs. `recorded`: settles
   *  when the store has its end. */
  freeName(publish: AllowedPublish, recorded: Promise<unknown>): void;
  /** Resolves when the end of the last publish of a slot is in the store, or could not be recorded. */
  recorded(slot: Slot): Promise<void>;
  /** Resolves when no publish of a slot runs any more, or after `limitMs`. */
  ended(slot: Slot, limitMs: number): Promise<void>;
  /** All running publishes, oldest first. */
  running(): readonly RunningPublish[];
  find(clientId: number): RunningPublish | undefined;
  /** The publish of a WHIP session. */
  ofSession(session: string): RunningPublish | undefined;
  /** Whether it is being ended and about to disappear. */
  isEnding(clientId: number): boolean;
  /** The publish of a stream: the one on air; the newest, since one that is being replaced may still be ending. */
  ofStream(organisationId: string, streamId: string): RunningPublish | undefined;
  /** The broadcaster ends the session: the publish can no longer be found by it, although it may take a moment to
   *  end. */
  closeSession(session: string): RunningPublish | undefined;
  /** Returns the matching running publishes, which the caller must end. A matching publish still being decided will not
   *  start, because of `ending`. `count`: of both. */
  stop(
    isMeant: (publish: AskedPublish) => boolean,
    ending: Ending,
  ): { readonly running: readonly RunningPublish[]; readonly count: number };
  /** Calls `ended` once when the publish has ended; immediately when it does not run. */
  onEnded(clientId: number, ended: () => void): void;
  /** Resolves when none runs any more. */
  empty(): Promise<void>;
}

export function createPublishes(): Publishes {
  const publishNames = new Map<string, NameUse>();
  const backupNames = new Map<string, NameUse>();
  const namesOf = ({ backup }: Slot) => (backup ? backupNames : publishNames);
  /** From the request until the media core has it. `stopped`: why one must not start. */
  const asked = new Map<number, AskedPublish & { stopped: Ending | null }>();
  /** In order of start. */
  const live = new Map<number, Live>();
  const sessions = new Map<string, Live>();
  const whenEmpty: (() => void)[] = [];
  const running = () => [...live.values()];

  /** Forgets a name that is neither used nor requested once its last end is recorded: until then the next publish waits
   *  for it. */
  function forgetUnused(slot: Slot, use: NameUse): void {
    const [names, { name }] = [namesOf(slot), slot];
    const forget = () => {
      if (names.get(name) === use && use.live === null && !use.pending) names.delete(name);
    };
    use.recorded.then(forget, forget);
  }

  return {
    reserve(slot, organisationId) {
      const [names, { name }] = [namesOf(slot), slot];
      const known = names.get(name);
      if (known?.pending) return null;
      const use = known ?? { organisationId, live: null, pending: true, ended: [], recorded: Promise.resolve() };
      use.pending = true;
      names.set(name, use);
      let clientId: number | null = null;
      return {
        ask(publish) {
          ({ clientId } = publish.intent);
          asked.set(clientId, { ...publish, stopped: null });
        },
        release() {
          if (clientId !== null) asked.delete(clientId);
          use.pending = false;
          forgetUnused(slot, use);
        },
        settle() {
          names.set(name, { organisationId, live: clientId, pending: false, ended: [], recorded: Promise.resolve() });
        },
      };
    },
    countOf: (organisationId, except) => namesUsed([publishNames, backupNames], organisationId, except).size,
    live: (slot) => namesOf(slot).get(slot.name)?.live ?? null,
    beside: ({ name, backup }) => live.get(namesOf({ name, backup: !backup }).get(name)?.live ?? 0),
    answered(clientId) {
      const { stopped = null } = asked.get(clientId) ?? {};
      asked.delete(clientId);
      return stopped;
    },
    start(publish) {
      const started = { ...publish, ended: [], isEnding: false };
      live.set(publish.clientId, started);
      if (publish.session !== null) sessions.set(publish.session, started);
    },
    end(clientId) {
      const publish = live.get(clientId);
      if (publish === undefined) return undefined;
      live.delete(clientId);
      if (publish.session !== null) sessions.delete(publish.session);
      for (const ended of publish.ended) ended();
      if (live.size === 0) for (const empty of whenEmpty.splice(0)) empty();
      return publish;
    },
    freeName({ intent, clientId }, recorded) {
      const use = namesOf(intent).get(intent.name);
      if (use?.live !== clientId) return;
      use.live = null;
      use.recorded = recorded;
      for (const ended of use.ended.splice(0)) ended();
      forgetUnused(intent, use);
    },
    async recorded(slot) {
      await namesOf(slot)
        .get(slot.name)
        ?.recorded.catch(() => {});
    },
    async ended(slot, limitMs) {
      const use = namesOf(slot).get(slot.name);
      if (use === undefined || use.live === null) return;
      const replaced = new Promise<void>((resolve) => use.ended.push(resolve));
      await step("replaced", () => inTime(limitMs, replaced, undefined));
    },
    running,
    find: (clientId) => live.get(clientId),
    isEnding: (clientId) => live.get(clientId)?.isEnding ?? false,
    ofSession: (session) => sessions.get(session),
    ofStream(organisationId, streamId) {
      const isOf = ({ intent }: Live) => intent.streamId === streamId && intent.organisationId === organisationId;
      const all = running().filter(isOf);
      return all.findLast(({ onAir }) => onAir) ?? all.at(-1);
    },
    closeSession(session) {
      const publish = sessions.get(session);
      sessions.delete(session);
      if (publish !== undefined) publish.isEnding = true;
      return publish;
    },
    stop(isMeant, ending) {
      const waiting = [...asked.values()].filter(isMeant);
      for (const publish of waiting) publish.stopped = ending;
      const meant = running().filter(isMeant);
      for (const publish of meant) publish.isEnding = true;
      return { running: meant, count: waiting.length + meant.length };
    },
    onEnded(clientId, ended) {
      const publish = live.get(clientId);
      if (publish === undefined) ended();
      else publish.ended.push(ended);
    },
    async empty() {
      if (live.size > 0) await new Promise<void>((resolve) => whenEmpty.push(resolve));
    },
  };
}

/** The names of an organisation that a publish or a request has, without `except`. */
function namesUsed(
  tables: readonly ReadonlyMap<string, NameUse>[],
  organisationId: string,
  except: string,
): ReadonlySet<string> {
  const used = new Set<string>();
  for (const names of tables) {
    for (const [name, use] of names) {
      const isUsed = use.pending || use.live !== null;
      if (isUsed && use.organisationId === organisationId && name !== except) used.add(name);
    }
  }
  return used;
}
