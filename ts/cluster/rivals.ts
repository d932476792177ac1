// A publish on another node that holds the requested name (W20): whether it may be replaced, and its replacement.
import type { Logger } from "pino";
import { inTime } from "../in-time.ts";
import type { Channel } from "./channel.ts";
import type { Owned, Owners } from "./owners.ts";

/** How long a replaced publish may take to end, and how often that is checked, ms. */
const END_LIMIT_MS = 2_000;
const POLL_EVERY_MS = 50;

export interface Rival {
  /** Time since anything was received from its broadcaster, ms; null while its node does not answer. */
  readonly silentMs: number | null;
  /** Whether it is being ended and about to disappear. */
  readonly isEnding: boolean;
  /** Ends it, and resolves when the store has its end, or when that takes too long. */
  replace(): Promise<void>;
}

/** A publish, or the backup of one. */
interface Slot {
  readonly name: string;
  readonly backup: boolean;
}

export interface Rivals {
  /** `rival`: null when no publish of that kind holds the name on another node. `otherAt`: RTMP and RTMPS of the node
   *  with the counterpart: the backup of this publish, or the publish that this is the backup of; null for none. */
  find(slot: Slot): Promise<{ readonly rival: Rival | null; readonly otherAt: readonly string[] | null }>;
}

export function createRivals(deps: {
  readonly owners: Pick<Owners, "ofName" | "ofSlot">;
  readonly channel: Channel;
  readonly log: Logger;
}): Rivals {
  const { owners, channel, log } = deps;

  async function ask(
    { node, clientId }: Owned,
    path: "/silence" | "/replace",
  ): Promise<Pick<Rival, "silentMs" | "isEnding">> {
    try {
      const { body } = await channel.call(node, { method: "GET", target: `${path}?client=${clientId}` });
      const answer = (await body.json()) as { readonly silent_ms: number | null; readonly ending?: boolean };
      return { silentMs: answer.silent_ms, isEnding: answer.ending ?? false };
    } catch (err) {
      log.warn({ err, node: node.name, clientId }, "the node of a publish of the same name does not answer");
      return { silentMs: null, isEnding: false };
    }
  }

  return {
    async find(slot) {
      // Most names are live on no other node: one query suffices.
      if ((await owners.ofName(slot.name)) === null) return { rival: null, otherAt: null };
      const owned = await owners.ofSlot(slot);
      const other = await owners.ofSlot({ ...slot, backup: !slot.backup });
      const otherAt = other && [other.node.rtmp, other.node.rtmps].filter((url) => url != null);
      if (owned === null) return { rival: null, otherAt };
      const rival = {
        ...(await ask(owned, "/silence")),
        async replace() {
          await ask(owned, "/replace");
          await inTime(END_LIMIT_MS, ended(slot), undefined);
        },
      };
      return { rival, otherAt };
    },
  };

  /** Stops asking the store after the limit: a node that does not answer may keep its publish indefinitely. */
  async function ended(slot: Slot): Promise<void> {
    const limit = AbortSignal.timeout(END_LIMIT_MS);
    while (!limit.aborted && (await owners.ofSlot(slot)) !== null) {
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
    }
  }
}

/** Answers the queries of other nodes about this node's publishes. */
export function answersToRivals(deps: {
  /** null: it does not run. */
  readonly silentMs: (clientId: number) => number | null;
  readonly isEnding: (clientId: number) => boolean;
  readonly replace: (clientId: number) => void;
}): Readonly<Record<string, (asked: URLSearchParams) => unknown>> {
  const clientIn = (asked: URLSearchParams) => Number(asked.get("client"));
  return {
    "/silence": (asked) => {
      const clientId = clientIn(asked);
      return { silent_ms: deps.silentMs(clientId), ending: deps.isEnding(clientId) };
    },
    "/replace": (asked) => {
      deps.replace(clientIn(asked));
      return { silent_ms: null };
    },
  };
}
