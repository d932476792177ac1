// One client of the deprecated v5 signalling (api §5): requests one after another, each with its reply, and the pushes
// in between. Handles frames, not sockets.
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { isObject, type Json, readJsonObject } from "../../publish/whip/amf0.ts";
import type { Whip } from "../../publish/whip/whip-publishes.ts";
import type { V5Access, V5Credential } from "./v5-access.ts";
import { readBroadcastRequest } from "./v5-broadcast.ts";
import { faultOf, faultOfOutcome, V5Fault } from "./v5-faults.ts";
import { readFrame, type V5Request, wrong } from "./v5-messages.ts";
import { startV5Pushes, type V5Pushes } from "./v5-pushes.ts";
import type { NoteV5Refusal } from "./v5-refusals.ts";

/** Requests that wait their turn; a client that sends more than this many ahead is disconnected. */
const WAITING_LIMIT = 200;
/** The handler names that WHIP's metadata allows (P12). */
const HANDLERS = ["onMetaData", "onCuePoint"];

export interface V5ConnectionDeps {
  readonly access: V5Access;
  readonly whip: Pick<
    Whip,
    "limit" | "invite" | "answer" | "state" | "onEnded" | "recentEnd" | "iceServers" | "sendMetadata" | "end"
  >;
  readonly noteRefusal: NoteV5Refusal;
  readonly log: Logger;
  /** Called when a broadcast of this organisation has begun by the deprecated signalling. */
  readonly noteUse: (organisation: string) => void;
}

/** The connection's view of its socket. */
export interface V5Peer {
  /** Sends a text frame. */
  send(text: string): void;
  /** Closes the connection because a limit is exceeded. */
  cutOff(): void;
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Host name under which the socket was requested. */
  readonly requestHost: string;
}

export interface V5Connection {
  /** Takes a frame; null stands for a binary one. */
  handleFrame(frame: string | null): void;
  /** The socket has closed: a broadcast ends with it (S3). */
  handleClosed(): void;
  readonly isSignedIn: boolean;
}

interface Broadcast {
  /** Session id of `Whip`. */
  readonly session: string;
  readonly pushes: V5Pushes;
}

type Reply = Readonly<Record<string, unknown>>;
/** A reply, and an action that follows once it is sent, such as pushes. */
type Answer = { readonly reply: Reply; readonly after?: () => void };

export function createV5Connection(deps: V5ConnectionDeps, peer: V5Peer): V5Connection {
  const { access, whip, log } = deps;
  let signedIn: { readonly sessionId: string; readonly credential: V5Credential } | null = null;
  let broadcast: Broadcast | null = null;
  /** Whether the last broadcast ended before the client stopped it. */
  let hasEnded = false;
  let isClosed = false;
  let waiting = 0;
  let turn: Promise<void> = Promise.resolve();

  function send(message: Reply): void {
    if (!isClosed) peer.send(JSON.stringify(message));
  }

  async function handle(frame: string | null): Promise<void> {
    if (isClosed) return;
    const read = readFrame(frame);
    if (read.outcome === "fault") {
      send({ message_id: read.id, error: read.fault.toReply() });
      return;
    }
    const { id, request } = read;
    try {
      const { reply, after } = await perform(request);
      send({ message_id: id, ...reply });
      after?.();
    } catch (error) {
      const fault = faultOf(error);
      if (fault === null) log.error({ err: error, type: request.type }, "v5 request failed");
      send({ message_id: id, error: (fault ?? new V5Fault(106001)).toReply() });
    }
  }

  async function perform(request: V5Request): Promise<Answer> {
    switch (request.type) {
      case "sign_in":
        return await signIn(request);
      case "start_broadcast":
        return await start(request);
      case "signaling_message":
        return signal(request);
      case "send_metadata":
        return sendMetadata(request);
      case "stop_broadcast":
        requireSession(request.session_id);
        // Clients close their WebRTC connection first, which also ends the broadcast.
        if (broadcast !== null || !hasEnded) endBroadcast(broadcastOf(request));
        hasEnded = false;
        return { reply: {} };
      case "sign_out":
        requireSession(request.session_id);
        if (broadcast !== null) endBroadcast(broadcast);
        signedIn = null;
        return { reply: {} };
      case "status":
        return { reply: { data: dataOf(request.data) } };
      case "echo":
        requireSession(request.session_id);
        return { reply: { data: request.message ?? null } };
    }
  }

  async function signIn(request: Extract<V5Request, { type: "sign_in" }>): Promise<Answer> {
    if (broadcast !== null) throw new V5Fault(102001, "A broadcast is running: stop it first");
    const asked = { address: peer.address, name: null, token: request.jwt ?? request.token };
    const credential = await deps.noteRefusal(asked, () => access.signIn(request));
    const sessionId = randomUUID();
    signedIn = { sessionId, credential };
    const iceServers = whip.iceServers(sessionId);
    const servers = iceServers.length === 0 ? {} : { ice_servers: iceServers };
    return { reply: { session_id: sessionId, user_id: decimalId(), ...servers } };
  }

  async function start(request: Extract<V5Request, { type: "start_broadcast" }>): Promise<Answer> {
    const { credential } = requireSession(request.session_id);
    if (broadcast !== null) throw new V5Fault(102001, "A broadcast is already running: stop it first");
    const { address, requestHost } = peer;
    const asked = { address, name: request.streamname, token: request.jwt ?? textOf(credential) };
    const invitation = await deps.noteRefusal(asked, async () => {
      const requested = readBroadcastRequest(request);
      const hit = whip.limit(address, "offer");
      if (hit !== null) throw faultOfOutcome({ outcome: "limited", ...hit });
      return { ...(await access.target(credential, request)), ...requested };
    });
    // `stereo`, a query parameter of WHIP, does not exist in the v5 signalling.
    const outcome = await whip.invite({ ...invitation, via: "v5", address, requestHost, stereo: false });
    if (outcome.outcome !== "opened") throw faultOfOutcome(outcome);
    const { session, organisation, answer: offer } = outcome;
    if (isClosed) {
      // Accepted and ended (W12a).
      whip.end(session);
      return { reply: {} };
    }
    deps.noteUse(organisation);
    const pushes = startV5Pushes({ send, state: () => whip.state(session) });
    const begun: Broadcast = { session, pushes };
    broadcast = begun;
    hasEnded = false;
    return {
      reply: { peer_id: pushes.peerId },
      after() {
        pushes.offer(offer);
        whip.onEnded(session, () => {
          if (broadcast !== begun) return;
          broadcast = null;
          hasEnded = true;
          pushes.end(whip.recentEnd(session));
        });
      },
    };
  }

  function signal(request: Extract<V5Request, { type: "signaling_message" }>): Answer {
    const { session } = broadcastOf(request);
    const { data } = request;
    if ("candidate" in data) return { reply: {} };
    const refusal = whip.answer(session, data.sdp);
    if (refusal === null) return { reply: {} };
    // The client does not wait for this reply: the broadcast ends, and the push of its end informs the client.
    const fault = new V5Fault(101003, "The answer cannot be used", { parameter: "data.sdp", reason: refusal.code });
    if (refusal.code !== "answer_not_awaited") whip.end(session);
    throw fault;
  }

  function sendMetadata(request: Extract<V5Request, { type: "send_metadata" }>): Answer {
    const { session } = broadcastOf(request);
    const { eventName, payload } = request.data;
    const text = typeof payload === "string" ? payload : JSON.stringify(payload ?? null);
    // Converted to text, so that depth and members are bounded whatever form it came in.
    const values = readJsonObject(text);
    if (!HANDLERS.includes(eventName)) throw wrong("data.eventName");
    if (values === null || !isObject(values as Json)) throw wrong("data.payload");
    if (!whip.sendMetadata(session, eventName, values)) throw new V5Fault(107002, "No broadcast is running");
    return { reply: {} };
  }

  function requireSession(sessionId: string | null): NonNullable<typeof signedIn> {
    if (signedIn === null || sessionId === null) throw new V5Fault(107001);
    if (sessionId !== signedIn.sessionId) throw new V5Fault(107002);
    return signedIn;
  }

  /** The running broadcast, identified by the socket; a peer id in the request must be one of its two. */
  function broadcastOf(parties: {
    readonly sender_peer: string | null;
    readonly receiver_peer: string | null;
  }): Broadcast {
    if (signedIn === null) throw new V5Fault(107001);
    if (broadcast === null) throw new V5Fault(107002, "No broadcast is running");
    const { peerId, serverPeer } = broadcast.pushes;
    const named = [parties.sender_peer, parties.receiver_peer].filter((id) => id !== null);
    const isOther = named.length > 0 && !named.some((id) => id === peerId || id === serverPeer);
    if (isOther) throw new V5Fault(107002, "The broadcast of that peer has ended");
    return broadcast;
  }

  /** `isLeft`: it was not ended deliberately. */
  function endBroadcast({ session, pushes }: Broadcast, isLeft = false): void {
    broadcast = null;
    pushes.stop();
    whip.end(session, isLeft);
  }

  return {
    get isSignedIn() {
      return signedIn !== null;
    },
    handleFrame(frame) {
      if (isClosed) return;
      if (waiting >= WAITING_LIMIT) {
        peer.cutOff();
        return;
      }
      waiting += 1;
      turn = turn
        .then(() => handle(frame))
        .catch((err: unknown) => log.error({ err }, "v5 frame failed"))
        .finally(() => {
          waiting -= 1;
        });
    },
    handleClosed() {
      isClosed = true;
      if (broadcast !== null) endBroadcast(broadcast, true);
    },
  };
}

const textOf = (credential: V5Credential) => (credential.kind === "token" ? credential.text : null);

/** `status` carries an object, or one as text; its content is not used. */
function dataOf(data: unknown): unknown {
  return (typeof data === "string" ? readJsonObject(data) : data) ?? null;
}

/** Clients treat it as a number: 53 bits, so that none are lost. */
function decimalId(): string {
  const bytes = randomUUID().replaceAll("-", "").slice(0, 13);
  return String(BigInt(`0x${bytes}`));
}
