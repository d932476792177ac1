// Every publish of this node, from before its customer is asked until its end is in the store: which names they have
// (W20), and by what they are found. No I/O, no policy. Publishes of other nodes are behind `ts/cluster`.
import { inTime } from "../in-time.ts";
import type { Upstream } from "../media.ts";
import { step } from "../step-times.ts";
import type { TokenClaims } from "../token/tokens.ts";
import type { Intent } from "./record.ts";
import type { UpstreamNames } from "./upstreams/deployment-upstreams.ts";

/** What is known of a publish before it runs. */
export interface AskedPublish {
  /** What the customer was told, and where; its `webhook` is null when nobody was asked. */
  readonly intent: Intent;
  /** Of the web token that it came with; null when there was none. */
  readonly claims: TokenClaims | null;
}

export interface AllowedPublish extends AskedPublish {
  readonly clientId: number;
  /** The operator's upstreams for this publish, and the stream's. */
  readonly upstreams: readonly Upstream[];
  /** What the customer calls those of the stream, by id. */
  readonly upstreamLabels: ReadonlyMap<string, string | null>;
  /** What a sender that can be told is told to stay below, kbit/s; 0 is no limit. */
  readonly maxBitrateKbps: number;
  /** How long its upstreams and players are held when its publisher is lost, ms. */
  readonly holdMs: number;
  /** Epoch ms. */
  readonly acceptedAt: number;
}

/** What is known of a publish before the media core has it. */
export interface StartingPublish extends AllowedPublish {
  readonly protocol: Intent["protocol"];
  /** The id in its WHIP session's URL, which is a capability: never logged. Null for RTMP. */
  readonly session: string | null;
}

/** A publish from its acceptance to its end. */
export interface RunningPublish extends StartingPublish {
  /** The lost publish whose upstreams and players it went on with; null for none, or before that is known. */
  continues: number | null;
  /** Upstreams that were added while it, or what it continues, ran: by id. */
  readonly addedUpstreams: Map<string, UpstreamNames>;
}

/** A name that one request has for itself until it is decided. */
export interface Reservation {
  /** The customer is about to be asked: from now on the publish may be stopped. */
  ask(publish: AskedPublish): void;
  /** The request was denied; a running publish of the name is untouched. */
  release(): void;
  /** The request was allowed, and the name is its publish's until `freeName`. */
  settle(): void;
}

interface Live extends RunningPublish {
  /** Called when it has ended. */
  readonly ended: (() => void)[];
  isEnding: boolean;
}

interface NameUse {
  /** Client id of the running publish, null while the first one is being decided. */
  live: number | null;
  /** Another publish request of this name is being decided. */
  pending: boolean;
  /** Called when the running publish has ended. */
  ended: (() => void)[];
  /** Settles when the end of the last one is in the store, or could not be put there. */
  recorded: Promise<unknown>;
}

/** At most one pending request and one running publish per name. */
export interface Publishes {
  /** Reserves `name` for one request; null when another one has it. */
  reserve(name: string): Reservation | null;
  /** Client id of the running publish of `name`, or null. */
  live(name: string): number | null;
  /** The question about an allowed publish is over: what its broadcaster is told when it was stopped meanwhile, else
   *  null. */
  answered(clientId: number): string | null;
  start(publish: RunningPublish): void;
  /** It runs no more; undefined when it never did. Its name is taken until `freeName`. */
  end(clientId: number): RunningPublish | undefined;
  /** A publish has ended; nothing happens when another one of its name runs by now. `recorded`: settles when the store
   *  has its end. */
  freeName(publish: AllowedPublish, recorded: Promise<unknown>): void;
  /** Resolves when the end of the last publish of `name` is in the store, or could not be put there. */
  recorded(name: string): Promise<void>;
  /** Resolves when no publish of `name` runs any more, or after `limitMs`. */
  ended(name: string, limitMs: number): Promise<void>;
  /** Every one that runs, oldest first. */
  running(): readonly RunningPublish[];
  find(clientId: number): RunningPublish | undefined;
  /** Of a WHIP session. */
  ofSession(session: string): RunningPublish | undefined;
  /** Whether it was told to end, and will be gone in a moment. */
  isEnding(clientId: number): boolean;
  /** Of a stream; the newest, since one that is being replaced may still be ending. */
  ofStream(organisationId: string, streamId: string): RunningPublish | undefined;
  /** Its broadcaster ends it: nobody finds it by its session any more, although it may take a moment to end. */
  closeSession(session: string): RunningPublish | undefined;
  /** Those that run and are meant, which the caller tells to end. One that is being asked about will not run: its broadcaster is
   *  told `description`. `count`: of both. */
  stop(
    isMeant: (publish: AskedPublish) => boolean,
    description: string,
  ): { readonly running: readonly RunningPublish[]; readonly count: number };
  /** Calls `ended` once when the publish has ended; at once when it runs no more. */
  onEnded(clientId: number, ended: () => void): void;
  /** Resolves when none runs any more. */
  empty(): Promise<void>;
}

export function createPublishes(): Publishes {
  const names = new Map<string, NameUse>();
  /** From the question until the media core has it. `stopped`: what the broadcaster is told of one that is not to run. */
  const asked = new Map<number, AskedPublish & { stopped: string | null }>();
  /** In the order of their start. */
  const live = new Map<number, Live>();
  const sessions = new Map<string, Live>();
  const whenEmpty: (() => void)[] = [];
  const running = () => [...live.values()];

  /** Forgets a name that nobody has or wants once the last end is recorded: until then the next one waits for it. */
  function forgetUnused(name: string, use: NameUse): void {
    const forget = () => {
      if (names.get(name) === use && use.live === null && !use.pending) names.delete(name);
    };
    use.recorded.then(forget, forget);
  }

  return {
    reserve(name) {
      const known = names.get(name);
      if (known?.pending) return null;
      const use = known ?? { live: null, pending: true, ended: [], recorded: Promise.resolve() };
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
          forgetUnused(name, use);
        },
        settle() {
          names.set(name, { live: clientId, pending: false, ended: [], recorded: Promise.resolve() });
        },
      };
    },
    live: (name) => names.get(name)?.live ?? null,
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
    freeName({ intent: { name }, clientId }, recorded) {
      const use = names.get(name);
      if (use?.live !== clientId) return;
      use.live = null;
      use.recorded = recorded;
      for (const ended of use.ended.splice(0)) ended();
      forgetUnused(name, use);
    },
    async recorded(name) {
      await names.get(name)?.recorded.catch(() => {});
    },
    async ended(name, limitMs) {
      const use = names.get(name);
      if (use === undefined || use.live === null) return;
      const replaced = new Promise<void>((resolve) => use.ended.push(resolve));
      await step("replaced", () => inTime(limitMs, replaced, undefined));
    },
    running,
    find: (clientId) => live.get(clientId),
    isEnding: (clientId) => live.get(clientId)?.isEnding ?? false,
    ofSession: (session) => sessions.get(session),
    ofStream: (organisationId, streamId) =>
      running()
        .filter(({ intent }) => intent.streamId === streamId && intent.organisationId === organisationId)
        .at(-1),
    closeSession(session) {
      const publish = sessions.get(session);
      sessions.delete(session);
      if (publish !== undefined) publish.isEnding = true;
      return publish;
    },
    stop(isMeant, description) {
      const waiting = [...asked.values()].filter(isMeant);
      for (const publish of waiting) publish.stopped = description;
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
