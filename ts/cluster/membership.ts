// A node's membership of the cluster: its epoch, its heartbeats, and the consequences when another node is dead or the
// others have declared this one dead. It ends no publish and sends no webhook itself, but notifies the parts that do.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { untilTick } from "../in-time.ts";
import { EVERYTHING, type Share } from "../node-share.ts";
import type { Schema } from "../store/schema.ts";
import {
  beat,
  leave,
  type Node,
  type NodeStatus,
  presentNodes,
  register,
  registerAlone,
  renameNode,
  takeForDead,
} from "./nodes.ts";
import { BEAT_EVERY_MS, LEASE_MS, Watch } from "./watch.ts";

/** How often the other nodes are read, ms; besides, they are read when the lease of a silent one ends. */
const READ_EVERY_MS = 1_000;
/** After this long a node ends also what the others should have ended of a departed node, in case they have died, ms. */
const OTHERS_LIMIT_MS = 4_000;

/** The part of the membership that the owner of publishes needs. */
export interface Membership {
  /** Epoch of this node. Changes when the others declared it dead and it came back: publishes of the former epoch no
   *  longer belong to it. */
  readonly epoch: number;
  /** For how long the others cannot declare this node dead, ms: until then its publishes certainly belong to it.
   *  0: they may have done so. */
  sureForMs(): number;
}

/** For a service that uses the store alone. */
export async function joinAlone(
  db: Kysely<Schema>,
  node: { readonly name: string; readonly version: string; readonly now: number },
): Promise<Membership> {
  const status = { channel: null, http: null, rtmp: null, publishes: 0, load: 0 };
  const epoch = await registerAlone(db, { ...node, status }, node.now);
  return { epoch, sureForMs: () => Number.POSITIVE_INFINITY };
}

export interface ClusterMembership extends Membership {
  /** Every present node including this one, as last read; oldest first. */
  nodes(): readonly Node[];
  /** Epoch ms on the store's clock, which all nodes share. */
  now(): number;
  /** Starts sending heartbeats and watching those of others. */
  start(events: MembershipEvents): void;
  /** Sends a heartbeat immediately: when it resolves, the present state of the other nodes has been read, and
   *  they can read this node's. Rejects when the store does not answer. */
  readNodes(): Promise<void>;
  /** Leaves its name to its successor process, and takes another. */
  rename(name: string): Promise<void>;
  /** Marks this node as accepting no new publishes. */
  drain(): void;
  /** Sends the last heartbeat: call when no publish belongs to this node any more. */
  leave(): Promise<void>;
}

export interface MembershipEvents {
  /** The status that this node publishes. */
  readonly status: () => NodeStatus;
  /** Called after each heartbeat, which does not wait for it: checks for requests to this node. Not called again before
   *  it has resolved. */
  readonly alive: () => Promise<void>;
  /** The others declared this node dead: its publishes have been ended or will be. Called before it has its new
   *  epoch. */
  readonly lost: () => void;
  /** A node died or left, and its publishes have to be ended: this node's share of them immediately, some seconds later
   *  all that are left. Called again after a failure; no heartbeat waits for it. */
  readonly gone: (share: Share) => Promise<void>;
}

export interface ClusterDeps {
  /** The connection for signs of life: no other statement waits in front of them. */
  readonly db: Kysely<Schema>;
  readonly name: string;
  readonly version: string;
  readonly log: Logger;
  /** For a file store, where another process appears only in an upgrade: a node that is alone there sends no
   *  heartbeats, since nobody waits for them. `first`: the previous process is gone; `successor`: it still runs. null,
   *  the default: any node may join the store at any time. */
  readonly file?: "first" | "successor" | null;
}

export async function joinCluster(deps: ClusterDeps): Promise<ClusterMembership> {
  const { db, version, log, file = null } = deps;
  let { name } = deps;
  const watch = new Watch();
  let status: () => NodeStatus = () => ({ channel: null, http: null, rtmp: null, publishes: 0, load: 0 });
  const registered = file === "first" ? registerAlone : register;
  let epoch = await registered(db, { name, version, status: status() });
  let state: "up" | "draining" = "up";
  let present = await presentNodes(db);
  let confirmedAt = performance.now();
  /** Offset of the store's clock from `performance.now`. */
  let ahead = (present.find((node) => node.epoch === epoch)?.beatAt ?? 0) - confirmedAt;
  let events: MembershipEvents | null = null;
  let beating: NodeJS.Timeout | undefined;
  let reading: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();
  let left = false;
  const attend = once(async () => await events?.alive(), log);
  const owed = createOwed({ log, gone: async (share) => await events?.gone(share) });

  /** One small statement, whatever else this node does. */
  async function live(): Promise<void> {
    const asked = performance.now();
    const storeNow = await beat(db, epoch, state, status());
    if (storeNow === null) return await startAnew();
    confirmedAt = asked;
    ahead = storeNow - (asked + performance.now()) / 2;
    attend();
  }

  async function readOthers(): Promise<void> {
    const asked = performance.now();
    const read = await presentNodes(db);
    const others = read.filter((node) => node.epoch !== epoch);
    const wasThere = present;
    present = read;
    for (const node of watch.read(others, asked)) {
      if (!(await takeForDead(db, node))) continue;
      log.error({ node: node.name, epoch: node.epoch }, "node gave no sign of life and is declared dead");
      present = present.filter((of) => of.epoch !== node.epoch);
    }
    const isGone = ({ epoch: of }: Node) => of !== epoch && !present.some((node) => node.epoch === of);
    if (wasThere.some(isGone)) owed.from(asked);
    owed.settle(asked, shareOf(present, epoch));
  }

  async function startAnew(): Promise<void> {
    log.error({ epoch }, "the other nodes declared this one dead: its publishes end");
    events?.lost();
    epoch = await register(db, { name, version, status: status() });
    confirmedAt = performance.now();
    log.info({ epoch }, "this node is back");
  }

  /** Runs `act` every `everyMs`, counted from start to start. `early`: the earliest moment after a given one at which it
   *  runs besides. */
  function repeat(
    act: () => Promise<void>,
    everyMs: number,
    keep: (timer: NodeJS.Timeout) => void,
    early = (_after: number) => Number.POSITIVE_INFINITY,
  ): void {
    const startedAt = performance.now();
    void inTurn(async () => (isByItself() ? undefined : await act()))
      .catch((err: unknown) => log.warn({ err }, "no sign of life could be written: the store does not answer"))
      .finally(() => {
        if (left) return;
        const nextAt = Math.min(startedAt + everyMs, early(startedAt));
        const restMs = isByItself() ? untilTick(everyMs) : Math.max(0, Math.ceil(nextAt - performance.now()));
        keep(setTimeout(() => repeat(act, everyMs, keep, early), restMs).unref());
      });
  }

  function inTurn(act: () => Promise<void>): Promise<void> {
    const acted = turn.then(act);
    turn = acted.catch(() => {});
    return acted;
  }

  /** Whether no other process can have joined the store without this node's knowledge. */
  function isByItself(): boolean {
    return file !== null && owed.isNothing() && present.every((node) => node.epoch === epoch);
  }

  return {
    get epoch() {
      return epoch;
    },
    sureForMs: () =>
      isByItself() ? Number.POSITIVE_INFINITY : Math.max(0, confirmedAt + LEASE_MS - performance.now()),
    nodes: () => present,
    now: () => Math.round(performance.now() + ahead),
    start(given) {
      events = given;
      status = given.status;
      repeat(live, BEAT_EVERY_MS, (timer) => {
        beating = timer;
      });
      const keep = (timer: NodeJS.Timeout) => {
        reading = timer;
      };
      repeat(readOthers, READ_EVERY_MS, keep, (after) => watch.nextEndAfter(after));
    },
    async readNodes() {
      await inTurn(live);
      await inTurn(readOthers);
    },
    async rename(other) {
      await inTurn(() => renameNode(db, epoch, other));
      name = other;
    },
    drain() {
      state = "draining";
    },
    async leave() {
      left = true;
      clearTimeout(beating);
      clearTimeout(reading);
      await turn;
      await leave(db, epoch);
    },
  };
}

/** `act` in the background, never twice at a time; a failure is logged. */
function once(act: () => Promise<void>, log: Logger): () => void {
  let running = false;
  return () => {
    if (running) return;
    running = true;
    act()
      .catch((err: unknown) => log.warn({ err }, "requests to this node could not be read"))
      .finally(() => {
        running = false;
      });
  };
}

/** Each of the present nodes has one share, and all of them together have everything. */
function shareOf(present: readonly Node[], epoch: number): Share {
  const index = present.findIndex((node) => node.epoch === epoch);
  return index === -1 ? EVERYTHING : { index, of: present.length };
}

/** What is still to be done about departed nodes: first this node's share, later everything that is left. */
function createOwed(deps: { readonly log: Logger; readonly gone: (share: Share) => Promise<void> }) {
  /** When each has to be done, on `performance.now`; null: nothing is pending. */
  let shareFrom: number | null = null;
  let restFrom: number | null = null;
  let running = false;

  async function end(now: number, share: Share): Promise<void> {
    const [hadShare, hadRest] = [shareFrom, restFrom];
    if (shareFrom !== null) {
      await deps.gone(share);
      // Of a node that left meanwhile, the share is still to be ended.
      if (shareFrom === hadShare) shareFrom = null;
    }
    if (restFrom === null || now < restFrom) return;
    await deps.gone(EVERYTHING);
    if (restFrom === hadRest) restFrom = null;
  }

  return {
    isNothing: () => shareFrom === null && restFrom === null,
    from(now: number) {
      shareFrom = now;
      restFrom = now + OTHERS_LIMIT_MS;
    },
    /** Does what is due, in the background. */
    settle(now: number, share: Share) {
      if (running || (shareFrom === null && (restFrom === null || now < restFrom))) return;
      running = true;
      end(now, share)
        .catch((err: unknown) => deps.log.warn({ err }, "publishes of a departed node could not be ended yet"))
        .finally(() => {
          running = false;
        });
    },
  };
}
