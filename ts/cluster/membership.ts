// A node's part in the service: its epoch, its signs of life, and what follows when another node is dead or when the others
// took this one for dead. It ends no publish and sends no webhook itself: it tells those who do.
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

/** How long the nodes that did not notice first wait, ms. */
const OTHERS_WAIT_MS = 4_000;

/** What the owner of publishes asks of its membership. */
export interface Membership {
  /** Of this node. Changes when the others took it for dead and it came back: what it owned then is not its own any more. */
  readonly epoch: number;
  /** Whether the others cannot have taken this node for dead: what it owns is its own for sure. */
  isSure(): boolean;
}

/** A service that has the store for itself. */
export async function joinAlone(
  db: Kysely<Schema>,
  node: { readonly name: string; readonly version: string; readonly now: number },
): Promise<Membership> {
  const status = { channel: null, http: null, rtmp: null, publishes: 0, load: 0 };
  const epoch = await registerAlone(db, { ...node, status }, node.now);
  return { epoch, isSure: () => true };
}

export interface ClusterMembership extends Membership {
  /** Every node that others count on, this one too, as last read; the oldest first. */
  nodes(): readonly Node[];
  /** Epoch ms by the store's clock, which all nodes share. */
  now(): number;
  /** From now on signs of life are given, and asked for. */
  start(events: MembershipEvents): void;
  /** A sign of life at once: what the others say of themselves is known when it resolves, and they can know of this one.
   *  Rejects when the store does not answer. */
  look(): Promise<void>;
  /** Leaves its name to the process that follows this one, and takes another. */
  rename(name: string): Promise<void>;
  /** This node takes no new publishes. */
  drain(): void;
  /** Gives the last sign of life: nothing is owned any more. */
  leave(): Promise<void>;
}

export interface MembershipEvents {
  /** What this node says of itself. */
  readonly status: () => NodeStatus;
  /** A sign of life was given: what others want of this node is looked at. */
  readonly alive: () => Promise<void>;
  /** The others took this node for dead: what it owned has been ended or will be. Called before it has its new epoch. */
  readonly lost: () => void;
  /** A node died or left: what it owned is anybody's. Called by the one that noticed at once, by the others some seconds
   *  later, should that one die too; again after a failure. */
  readonly gone: () => Promise<void>;
}

export interface ClusterDeps {
  readonly db: Kysely<Schema>;
  readonly name: string;
  readonly version: string;
  readonly log: Logger;
  /** How others come to a store that is a file. By none but an upgrade: while this node is there by itself it gives no
   *  signs of life, since nobody waits for them. `first`: whoever was there before is gone; `successor`: that one is not.
   *  null, the default: any node may come to the store at any time. */
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
  /** Of the store's clock before `performance.now`. */
  let ahead = (present.find((node) => node.epoch === epoch)?.beatAt ?? 0) - confirmedAt;
  let events: MembershipEvents | null = null;
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();
  let left = false;
  /** When what nodes that are gone have left is to be seen to, by `performance.now`; null: nothing is. */
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
      log.error({ node: node.name, epoch: node.epoch }, "node gave no sign of life and is taken for dead");
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
    log.error({ epoch }, "the other nodes took this one for dead: its publishes end");
    events?.lost();
    epoch = await register(db, { name, version, status: status() });
    confirmedAt = performance.now();
    log.info({ epoch }, "this node is back");
  }

  function next(): void {
    void inTurn(async () => (isByItself() ? undefined : await live()))
      .catch((err: unknown) => log.warn({ err }, "no sign of life could be given: the store does not answer"))
      .finally(() => {
        if (!left) timer = setTimeout(next, BEAT_EVERY_MS).unref();
      });
  }

  function inTurn(act: () => Promise<void>): Promise<void> {
    const acted = turn.then(act);
    turn = acted.catch(() => {});
    return acted;
  }

  /** Nobody can come to the store without this node's knowing. */
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
