// A node's membership of the cluster: its epoch, its heartbeats, and the consequences when another node is dead or the
// others have declared this one dead. It ends no publish and sends no webhook itself, but notifies the parts that do.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
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

/** How long the other nodes wait before they take over what one of them has noticed first, ms. */
const OTHERS_WAIT_MS = 4_000;

/** The part of the membership that the owner of publishes needs. */
export interface Membership {
  /** Epoch of this node. Changes when the others declared it dead and it came back: publishes of the former epoch no
   *  longer belong to it. */
  readonly epoch: number;
  /** Whether the others cannot have declared this node dead, so that its publishes certainly belong to it. */
  isSure(): boolean;
}

/** For a service that uses the store alone. */
export async function joinAlone(
  db: Kysely<Schema>,
  node: { readonly name: string; readonly version: string; readonly now: number },
): Promise<Membership> {
  const status = { channel: null, http: null, rtmp: null, publishes: 0, load: 0 };
  const epoch = await registerAlone(db, { ...node, status }, node.now);
  return { epoch, isSure: () => true };
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
  look(): Promise<void>;
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
  /** Called after each heartbeat: checks for requests to this node. */
  readonly alive: () => Promise<void>;
  /** The others declared this node dead: its publishes have been ended or will be. Called before it has its new
   *  epoch. */
  readonly lost: () => void;
  /** A node died or left, and its publishes have to be ended. Called immediately on the node that noticed, on
   *  the others some seconds later in case that node dies too; called again after a failure. */
  readonly gone: () => Promise<void>;
}

export interface ClusterDeps {
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
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();
  let left = false;
  /** When the publishes of departed nodes have to be ended, on `performance.now`; null: nothing is pending. */
  let owedFrom: number | null = null;

  async function live(): Promise<void> {
    const asked = performance.now();
    const storeNow = await beat(db, epoch, state, status());
    if (storeNow === null) return await startAnew();
    confirmedAt = asked;
    ahead = storeNow - (asked + performance.now()) / 2;
    await events?.alive();
    const read = await presentNodes(db);
    const others = read.filter((node) => node.epoch !== epoch);
    const wasThere = present;
    present = read;
    const dead = watch.read(others, asked);
    for (const node of dead) {
      if (!(await takeForDead(db, node))) continue;
      log.error({ node: node.name, epoch: node.epoch }, "node gave no sign of life and is declared dead");
      present = present.filter((of) => of.epoch !== node.epoch);
      owedFrom = asked;
    }
    const isGone = ({ epoch: of }: Node) => of !== epoch && !present.some((node) => node.epoch === of);
    if (wasThere.some(isGone)) owedFrom ??= asked + OTHERS_WAIT_MS;
    if (owedFrom === null || owedFrom > asked) return;
    await events?.gone();
    owedFrom = null;
  }

  async function startAnew(): Promise<void> {
    log.error({ epoch }, "the other nodes declared this one dead: its publishes end");
    events?.lost();
    epoch = await register(db, { name, version, status: status() });
    confirmedAt = performance.now();
    log.info({ epoch }, "this node is back");
  }

  function next(): void {
    void inTurn(async () => (isByItself() ? undefined : await live()))
      .catch((err: unknown) => log.warn({ err }, "no sign of life could be written: the store does not answer"))
      .finally(() => {
        if (!left) timer = setTimeout(next, BEAT_EVERY_MS).unref();
      });
  }

  function inTurn(act: () => Promise<void>): Promise<void> {
    const acted = turn.then(act);
    turn = acted.catch(() => {});
    return acted;
  }

  /** Whether no other process can have joined the store without this node's knowledge. */
  function isByItself(): boolean {
    return file !== null && owedFrom === null && present.every((node) => node.epoch === epoch);
  }

  return {
    get epoch() {
      return epoch;
    },
    isSure: () => isByItself() || performance.now() - confirmedAt < LEASE_MS,
    nodes: () => present,
    now: () => Math.round(performance.now() + ahead),
    start(given) {
      events = given;
      status = given.status;
      next();
    },
    look: () => inTurn(live),
    async rename(other) {
      await inTurn(() => renameNode(db, epoch, other));
      name = other;
    },
    drain() {
      state = "draining";
    },
    async leave() {
      left = true;
      clearTimeout(timer);
      await turn;
      await leave(db, epoch);
    },
  };
}
