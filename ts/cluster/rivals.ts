// A publish of another node that has the name which is wanted here (W20): whether it gives way, and that it does.
import type { Logger } from "pino";
import { inTime } from "../in-time.ts";
import type { Channel } from "./channel.ts";
import type { Owned, Owners } from "./owners.ts";

/** How long a replaced publish may take to end, and how often it is looked for meanwhile, ms. */
const END_LIMIT_MS = 2_000;
const LOOK_EVERY_MS = 50;

export interface Rival {
  /** For how long nothing has come from its broadcaster, ms; null while its node does not answer. */
  readonly silentMs: number | null;
  /** It was told to end, and will be gone in a moment. */
  readonly isEnding: boolean;
  /** Ends it, and resolves when the store knows; or when that takes too long. */
  replace(): Promise<void>;
}

/** A publish, or the backup of one. */
interface Slot {
  readonly name: string;
  readonly backup: boolean;
}

export interface Rivals {
  /** `rival`: null, none of that kind runs under the name on another node. `otherAt`: RTMP and RTMPS of the node that has
   *  the one beside it, the backup of this publish, or the publish that this is the backup of; null for none. */
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
      // Most names are live nowhere else: one question.
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

  async function ended(slot: Slot): Promise<void> {
    while ((await owners.ofSlot(slot)) !== null) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** What a node answers about its own. */
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
