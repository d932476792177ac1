// Opens the connections from this node to the others, once.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { openChannel } from "../../cluster/channel.ts";
import { keepEnd } from "../../cluster/kept-ends.ts";
import type { ClusterMembership } from "../../cluster/membership.ts";
import { createOwners } from "../../cluster/owners.ts";
import { createPlays, type Plays } from "../../cluster/plays.ts";
import { createRivals, type Rivals } from "../../cluster/rivals.ts";
import { endingText } from "../../publish/ending/ending.ts";
import { NODE_ARGUMENT } from "../../publish/players.ts";
import type { Schema } from "../../store/schema.ts";
import type { Elsewhere } from "./forwarding.ts";
import { createOthers, type Others } from "./others.ts";

/** What a service needs to reach the other nodes. */
export interface Cluster {
  readonly elsewhere: Elsewhere;
  readonly others: Others;
  readonly rivals: Rivals;
  readonly plays: Plays;
}

/** `key`: the secret that the nodes share. */
export function openElsewhere(deps: {
  readonly db: Kysely<Schema>;
  readonly member: ClusterMembership;
  readonly key: Uint8Array;
  readonly log: Logger;
}): Cluster & { close(): Promise<void> } {
  const { db, member, key, log } = deps;
  const owners = createOwners(db, member);
  const channel = openChannel(key, member.now);
  const elsewhere: Elsewhere = {
    owners,
    channel,
    keepEnd: ({ clientId, node }, ending) =>
      keepEnd(db, { clientId, epoch: node.epoch, ending: ending && endingText(ending) }),
  };
  const of = { owners, channel, log };
  const plays = createPlays({ owners, key, argument: NODE_ARGUMENT, now: member.now });
  return { elsewhere, others: createOthers(of), rivals: createRivals(of), plays, close: channel.close };
}
