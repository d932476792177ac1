// Whether a new process finds free ports beside this one and the former ones, and which it has got. Said to the person
// who upgrades before anything changes.
import { lookup } from "node:dns/promises";
import { formerName, type Node } from "../cluster/nodes.ts";
import type { Config } from "../config.ts";
import { UpgradeFailed } from "../errors.ts";
import { arePortsFree, lastPort } from "../listen/free-ports.ts";

/** Rejects with `UpgradeFailed` while there are not enough. `nodes`: the present ones; `needsPulls`: whether this
 *  process still has to open its port for plays. */
export async function requirePorts(
  config: Config,
  nodes: readonly Pick<Node, "name">[],
  needsPulls: boolean,
): Promise<void> {
  const { media, node, databaseUrl } = config;
  const formers = nodes.filter(({ name }) => name.startsWith(formerName(node.name, ""))).length;
  const { address: host } = await lookup(media.host);
  const isMediaFree = await arePortsFree({ host, from: media.port, count: media.workers, hasUdp: true });
  if (!isMediaFree) throw full("media.port", media.port, `${media.workers} ports in a row (UDP and TCP)`, formers);
  if (databaseUrl === null) return;
  const count = needsPulls ? 2 : 1;
  const { address: nodeHost } = await lookup(node.host);
  const areNodeFree = await arePortsFree({ host: nodeHost, from: node.port, count, hasUdp: false });
  if (!areNodeFree) throw full("node.port", node.port, count === 1 ? "a port" : `${count} ports in a row`, formers);
}

function full(setting: string, from: number, needed: string, formers: number): UpgradeFailed {
  const held =
    formers === 0
      ? "by other programs"
      : `some of them by ${formers === 1 ? "a former process" : `${formers} former processes`} of this service, until the publishes there end (headgate nodes)`;
  return new UpgradeFailed(
    `${setting}: the new process needs ${needed} from ${from} to ${lastPort(from)}, and these are in use ${held}`,
  );
}

/** Which ports a process beside another has got, and up to which further ones are tried; null where the configured ones
 *  are any free ones. */
export function notesOfPorts(
  { media, node, databaseUrl }: Config,
  mediaPorts: readonly number[],
  channel: string | null,
): readonly string[] {
  const upTo = (port: number) => `further upgrades use the next ones, up to ${lastPort(port)}`;
  const notes: string[] = [];
  if (media.port !== 0) {
    const ports = [...new Set([mediaPorts[0], mediaPorts.at(-1)])].join(" to ");
    notes.push(`Its media ports, UDP and TCP, are ${ports} (media.port); ${upTo(media.port)}.`);
  }
  if (databaseUrl !== null && node.port !== 0 && channel !== null) {
    notes.push(`Other nodes reach it at ${channel} (node.port); ${upTo(node.port)}.`);
  }
  return notes;
}
