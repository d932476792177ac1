// `headgate nodes …`: the nodes on the store, and which of them accept no new publishes.
import { besides, type ListedNode, listNodes } from "../cluster/node-list.ts";
import { lastNode, markDraining } from "../cluster/nodes.ts";
import { BEAT_EVERY_MS } from "../cluster/watch.ts";
import { ConfigInvalid } from "../errors.ts";
import { type AtStore, atStore } from "./at-store.ts";
import type { GivenFlags } from "./flags.ts";
import { print, table, timeText } from "./output.ts";
import { unknownVerb, wanted } from "./words.ts";

/** One row of the list; null for values that an embedded store does not have for its single node. */
interface Shown extends Omit<ListedNode, "state" | "load" | "ageMs" | "beatAt"> {
  readonly state: ListedNode["state"] | null;
  readonly load: number | null;
  readonly beatAt: number | null;
  readonly ageMs: number | null;
}

const ONE_ONLY = "The embedded store has only this node; several nodes share a PostgreSQL (database_url).";

export async function runNodes(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, name] = words;
  await atStore(flags, async (at) => {
    switch (verb) {
      case undefined:
      case "ls":
        return await list(at, flags);
      case "drain":
      case "undrain":
        return await mark(at, flags, { name: wanted(name, "the node's name"), drains: verb === "drain" });
      default:
        throw unknownVerb("nodes", verb, ["ls", "drain NAME", "undrain NAME"]);
    }
  });
}

async function list(at: AtStore, flags: GivenFlags): Promise<void> {
  const isEmbedded = at.config.databaseUrl === null;
  const nodes = isEmbedded ? await ofFile(at) : await listNodes(at.db);
  const lines = table([
    ["name", "state", "epoch", "version", "HTTP", "RTMP", "other nodes", "publishes", "load", "sign of life"],
    ...nodes.map((node) => [
      ...[node.name, stateOf(node), node.epoch, node.version, node.http, node.rtmp, node.channel, node.publishes],
      node.load === null ? null : `${Math.round(node.load * 100)} %`,
      node.ageMs === null ? null : `${(node.ageMs / 1_000).toFixed(1)} s ago`,
    ]),
  ]);
  const more = isEmbedded ? [ONE_ONLY] : [];
  print(
    flags,
    nodes.map(record),
    nodes.length === 0 ? ["No node has been running here within the last day."] : [...lines, ...more],
  );
}

/** A node that accepts no new publish although it is not draining is full. */
const stateOf = ({ state, full = null }: Shown) => (state === "up" && full !== null ? "full" : state);

/** The single node of a file store, which sends no heartbeats because no other node could act on them; and predecessors
 *  that an upgrade has left running. */
async function ofFile({ db }: AtStore): Promise<readonly Shown[]> {
  const node = await lastNode(db);
  if (node === null) return [];
  const former = await besides(db, node.epoch);
  const { publishes } = await db
    .selectFrom("publish")
    .select((eb) => eb.fn.countAll<number>().as("publishes"))
    .where("state", "=", "live")
    .where((eb) => eb.or([eb("epoch", "is", null), eb("epoch", "not in", [0, ...former.map(({ epoch }) => epoch)])]))
    .executeTakeFirstOrThrow();
  return [{ ...node, publishes: Number(publishes), state: null, load: null, beatAt: null, ageMs: null }, ...former];
}

function record({ name, state, epoch, version, http, rtmp, channel, publishes, load, full = null, ...times }: Shown) {
  return {
    name,
    state,
    epoch,
    version,
    http,
    rtmp,
    channel,
    publishes,
    load,
    full,
    started_at: timeText(times.startedAt),
    last_sign_of_life_at: timeText(times.beatAt),
    last_sign_of_life_age_ms: times.ageMs,
  };
}

async function mark(
  { db, config }: AtStore,
  flags: GivenFlags,
  { name, drains }: { readonly name: string; readonly drains: boolean },
): Promise<void> {
  if (config.databaseUrl === null)
    throw new ConfigInvalid("the embedded store has only one node, and no other could take over: stop it with SIGTERM");
  if (!(await markDraining(db, name, drains))) {
    const names = (await listNodes(db)).map((node) => `  ${node.name}  ${node.state}`).join("\n");
    throw new ConfigInvalid(
      names === "" ? `no node is running here, and none is called ${name}` : `${name} is not running here:\n${names}`,
    );
  }
  const within = `within ${BEAT_EVERY_MS / 1_000} s`;
  print(flags, { name, state: drains ? "draining" : "up" }, [
    drains
      ? `${name} accepts no new publishes ${within}; running ones continue. It accepts new ones again after undrain or a restart.`
      : `${name} accepts new publishes again ${within}.`,
  ]);
}
