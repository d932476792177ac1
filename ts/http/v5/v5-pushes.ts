// Messages pushed to a client of the deprecated v5 signalling about its broadcast (docs/v5.md): that the transcoder runs,
// our offer, our candidates, and its state.
import { randomUUID } from "node:crypto";
import { type Ending, endForClients } from "../../publish/ending/ending.ts";
import type { WhipState } from "../../publish/whip/whip-publishes.ts";

/** How often the state is polled: while connecting, and afterwards, ms. */
const CONNECTING_PAUSE_MS = 100;
const RUNNING_PAUSE_MS = 1_000;
/** Code of an end that the client did not request: clients have no text for any code, and only report that it ended. */
export const BROADCAST_ENDED = 4711;

export interface V5Pushes {
  /** Peer ids of the client and of us in this broadcast: new for each. */
  readonly peerId: string;
  readonly serverPeer: string;
  /** Starts with our offer, followed by the states. */
  offer(sdp: string): void;
  /** Pushes that the broadcast has ended without a request of the client, and why if that is known. */
  end(ending: Ending | null): void;
  /** Stops all pushes. */
  stop(): void;
}

export function startV5Pushes(deps: {
  readonly send: (message: Readonly<Record<string, unknown>>) => void;
  readonly state: () => WhipState | null;
}): V5Pushes {
  const { send, state } = deps;
  const peerId = randomUUID();
  const serverPeer = randomUUID();
  let reported: WhipState = "connecting";
  let timer: NodeJS.Timeout | null = null;
  let isOver = false;

  function push(type: string, content: object): void {
    send({ type, sender_peer: serverPeer, receiver_peer: peerId, ...content });
  }

  function poll(): void {
    const now = state();
    if (now !== null && now !== reported) {
      reported = now;
      push("rtmp_status", { data: { status: "status", message: now } });
    }
    pollLater();
  }

  function pollLater(): void {
    timer = setTimeout(poll, reported === "connecting" ? CONNECTING_PAUSE_MS : RUNNING_PAUSE_MS);
    timer.unref();
  }

  function stop(): void {
    isOver = true;
    if (timer !== null) clearTimeout(timer);
  }

  return {
    peerId,
    serverPeer,
    offer(sdp) {
      push("transcoder_message", { state: "started" });
      push("sdp_message", { data: { sdp: { type: "offer", sdp } } });
      for (const candidate of candidatesOf(sdp)) push("ice_candidate", { data: { candidate } });
      if (!isOver) pollLater();
    },
    end(ending) {
      if (isOver) return;
      stop();
      // As in WHIP's problem document of an ended session; deployed clients ignore it.
      const ended = ending === null ? {} : { ended: endForClients(ending) };
      push("rtmp_status", { data: { status: "error", number: BROADCAST_ENDED, ...ended } });
    },
    stop,
  };
}

/** The candidates of the first section, which all sections share; browsers ignore those they already have. */
function candidatesOf(sdp: string): readonly object[] {
  const [, section = ""] = sdp.split(/^(?=m=)/m);
  const sdpMid = /^a=mid:(\S+)/m.exec(section)?.[1] ?? "0";
  const lines = section.matchAll(/^a=(candidate:[^\r\n]+)/gm);
  return [...lines].map(([, candidate]) => ({ sdpMLineIndex: 0, sdpMid, candidate }));
}
