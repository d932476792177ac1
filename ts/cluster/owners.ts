// Finds the other node that owns a running publish, by whatever a request names.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import type { ClusterMembership } from "./membership.ts";
import type { Node } from "./nodes.ts";

export interface Owned {
  readonly clientId: number;
  readonly organisationId: string;
  readonly streamId: string;
  readonly node: Node;
}

export interface Owners {
  /** Each: null when it runs here, or nowhere. */
  ofClient(clientId: number): Promise<Owned | null>;
  ofStream(streamId: string): Promise<Owned | null>;
  ofName(name: string): Promise<Owned | null>;
  /** The same for only the backup of a name, or only the other publish. */
  ofSlot(slot: { readonly name: string; readonly backup: boolean }): Promise<Owned | null>;
  /** The node of a WHIP session: the session's id contains the epoch. */
  ofSession(session: string): Node | null;
  /** Makes the id of a WHIP session on this node. */
  sessionId(id: string): string;
  /** Every other node that has publishes. */
  others(): readonly Node[];
  /** The node with the fewest publishes that accepts new ones and is not full; null when there is none besides this
   *  one. */
  withRoom(): Node | null;
  /** RTMP and RTMPS of that node: `rtmp://host:port/app`. */
  rtmpWithRoom(): readonly string[];
  /** `host:port` of RTMP on the other nodes. */
  rtmpHosts(): readonly string[];
}

export function createOwners(db: Kysely<Schema>, member: Pick<ClusterMembership, "epoch" | "nodes">): Owners {
  const present = (epoch: number) => {
    if (epoch === member.epoch) return null;
    return member.nodes().find((node) => node.epoch === epoch) ?? null;
  };
  const live = () =>
    db
      .selectFrom("publish")
      .select(["client_id", "organisation_id", "stream_id", "epoch"])
      .where("state", "=", "live")
      .where("epoch", "is not", null)
      .where("epoch", "!=", member.epoch);

  async function found(query: ReturnType<typeof live>): Promise<Owned | null> {
    if (member.nodes().every(({ epoch }) => epoch === member.epoch)) return null;
    const row = await query.executeTakeFirst();
    const node = row === undefined ? null : present(Number(row.epoch));
    if (row === undefined || node === null) return null;
    return { clientId: Number(row.client_id), organisationId: row.organisation_id, streamId: row.stream_id, node };
  }

  function withRoom(): Node | null {
    const open = member
      .nodes()
      .filter(
        ({ epoch, state, http, full = null }) => epoch !== member.epoch && state === "up" && full === null && http,
      );
    return open.sort((a, b) => a.publishes - b.publishes)[0] ?? null;
  }

  return {
    ofClient: (clientId) => found(live().where("client_id", "=", clientId)),
    async ofStream(streamId) {
      return isStorable(streamId) ? await found(live().where("stream_id", "=", streamId)) : null;
    },
    async ofName(name) {
      return isStorable(name) ? await found(live().where("name", "=", name).orderBy("backup")) : null;
    },
    ofSlot: ({ name, backup }) =>
      found(
        live()
          .where("name", "=", name)
          .where("backup", "=", backup ? 1 : 0),
      ),
    ofSession(session) {
      const [, epoch = ""] = /\.([0-9a-z]{1,10})$/.exec(session) ?? [];
      return epoch === "" ? null : present(Number.parseInt(epoch, 36));
    },
    sessionId: (id) => `${id}.${member.epoch.toString(36)}`,
    withRoom,
    rtmpWithRoom() {
      const { rtmp = null, rtmps = null } = withRoom() ?? {};
      return [rtmp, rtmps].filter((url) => url !== null);
    },
    rtmpHosts: () =>
      member
        .nodes()
        .flatMap(({ epoch, rtmp }) => (epoch === member.epoch || rtmp === null ? [] : [new URL(rtmp).host])),
    others: () => member.nodes().filter(({ epoch, publishes }) => epoch !== member.epoch && publishes > 0),
  };
}

/** No id or name has another form: the store cannot hold such text. */
const isStorable = (text: string) => !text.includes("\0") && text.isWellFormed();
