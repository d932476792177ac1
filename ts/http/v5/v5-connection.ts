// One client of the deprecated v5 signalling (docs/v5.md): requests one after another, each with its reply, and the pushes
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

interface SignedIn {
  readonly sessionId: string;
  readonly credential: V5Credential;
}

interface Broadcast {
  /** Session id of `Whip`. */
  readonly session: string;
  readonly pushes: V5Pushes;
}

type Reply = Readonly<Record<string, unknown>>;
/** A reply, and an action that follows once it is sent, such as pushes. */
type Answer = { readonly reply: Reply; readonly after?: () => void };

export class V5Connection {
  readonly #deps: V5ConnectionDeps;
  readonly #peer: V5Peer;
  #signedIn: SignedIn | null = null;
  #broadcast: Broadcast | null = null;
  /** Whether the last broadcast ended before the client stopped it. */
  #hasEnded = false;
  #isClosed = false;
  #waiting = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(deps: V5ConnectionDeps, peer: V5Peer) {
    this.#deps = deps;
    this.#peer = peer;
  }

  get isSignedIn(): boolean {
    return this.#signedIn !== null;
  }

  /** Takes a frame; null stands for a binary one. */
  handleFrame(frame: string | null): void {
    if (this.#isClosed) return;
    if (this.#waiting >= WAITING_LIMIT) {
      this.#peer.cutOff();
      return;
    }
    this.#waiting += 1;
    this.#turn = this.#turn
      .then(() => this.#handle(frame))
      .catch((err: unknown) => this.#deps.log.error({ err }, "v5 frame failed"))
      .finally(() => {
        this.#waiting -= 1;
      });
  }

  /** The socket has closed: a broadcast ends with it (S3). */
  handleClosed(): void {
    this.#isClosed = true;
    if (this.#broadcast !== null) this.#endBroadcast(this.#broadcast, true);
  }

  #send(message: Reply): void {
    if (!this.#isClosed) this.#peer.send(JSON.stringify(message));
  }

  async #handle(frame: string | null): Promise<void> {
    if (this.#isClosed) return;
    const read = readFrame(frame);
    if (read.outcome === "fault") {
      this.#send({ message_id: read.id, error: read.fault.toReply() });
      return;
    }
    const { id, request } = read;
    try {
      const { reply, after } = await this.#perform(request);
      this.#send({ message_id: id, ...reply });
      after?.();
    } catch (error) {
      const fault = faultOf(error);
      if (fault === null) this.#deps.log.error({ err: error, type: request.type }, "v5 request failed");
      this.#send({ message_id: id, error: (fault ?? new V5Fault(106001)).toReply() });
    }
  }

  async #perform(request: V5Request): Promise<Answer> {
    switch (request.type) {
      case "sign_in":
        return await this.#signIn(request);
      case "start_broadcast":
        return await this.#start(request);
      case "signaling_message":
        return this.#signal(request);
      case "send_metadata":
        return this.#sendMetadata(request);
      case "stop_broadcast":
        this.#requireSession(request.session_id);
        // Clients close their WebRTC connection first, which also ends the broadcast.
        if (this.#broadcast !== null || !this.#hasEnded) this.#endBroadcast(this.#broadcastOf(request));
        this.#hasEnded = false;
        return { reply: {} };
      case "sign_out":
        this.#requireSession(request.session_id);
        if (this.#broadcast !== null) this.#endBroadcast(this.#broadcast);
        this.#signedIn = null;
        return { reply: {} };
      case "status":
        return { reply: { data: dataOf(request.data) } };
      case "echo":
        this.#requireSession(request.session_id);
        return { reply: { data: request.message ?? null } };
    }
  }

  async #signIn(request: Extract<V5Request, { type: "sign_in" }>): Promise<Answer> {
    if (this.#broadcast !== null) throw new V5Fault(102001, "A broadcast is running: stop it first");
    const asked = { address: this.#peer.address, name: null, token: request.jwt ?? request.token };
    const credential = await this.#deps.noteRefusal(asked, () => this.#deps.access.signIn(request));
    const sessionId = randomUUID();
    this.#signedIn = { sessionId, credential };
    const iceServers = this.#deps.whip.iceServers(sessionId);
    const servers = iceServers.length === 0 ? {} : { ice_servers: iceServers };
    return { reply: { session_id: sessionId, user_id: decimalId(), ...servers } };
  }

  async #start(request: Extract<V5Request, { type: "start_broadcast" }>): Promise<Answer> {
    const { credential } = this.#requireSession(request.session_id);
    if (this.#broadcast !== null) throw new V5Fault(102001, "A broadcast is already running: stop it first");
    const { address, requestHost } = this.#peer;
    const asked = { address, name: request.streamname, token: request.jwt ?? textOf(credential) };
    const invitation = await this.#deps.noteRefusal(asked, async () => {
      const requested = readBroadcastRequest(request);
      const hit = this.#deps.whip.limit(address, "offer");
      if (hit !== null) throw faultOfOutcome({ outcome: "limited", ...hit });
      return { ...(await this.#deps.access.target(credential, request)), ...requested };
    });
    // `stereo`, a query parameter of WHIP, does not exist in the v5 signalling.
    const outcome = await this.#deps.whip.invite({ ...invitation, via: "v5", address, requestHost, stereo: false });
    if (outcome.outcome !== "opened") throw faultOfOutcome(outcome);
    const { session, organisation, answer: offer } = outcome;
    if (this.#isClosed) {
      // Accepted and ended (W12a).
      this.#deps.whip.end(session);
      return { reply: {} };
    }
    this.#deps.noteUse(organisation);
    const pushes = startV5Pushes({
      send: (message) => this.#send(message),
      state: () => this.#deps.whip.state(session),
    });
    const begun: Broadcast = { session, pushes };
    this.#broadcast = begun;
    this.#hasEnded = false;
    return {
      reply: { peer_id: pushes.peerId },
      after: () => {
        pushes.offer(offer);
        this.#deps.whip.onEnded(session, () => {
          if (this.#broadcast !== begun) return;
          this.#broadcast = null;
          this.#hasEnded = true;
          pushes.end(this.#deps.whip.recentEnd(session));
        });
      },
    };
  }

  #signal(request: Extract<V5Request, { type: "signaling_message" }>): Answer {
    const { session } = this.#broadcastOf(request);
    const { data } = request;
    if ("candidate" in data) return { reply: {} };
    const refusal = this.#deps.whip.answer(session, data.sdp);
    if (refusal === null) return { reply: {} };
    // The client does not wait for this reply: the broadcast ends, and the push of its end informs the client.
    const fault = new V5Fault(101003, "The answer cannot be used", { parameter: "data.sdp", reason: refusal.code });
    if (refusal.code !== "answer_not_awaited") this.#deps.whip.end(session);
    throw fault;
  }

  #sendMetadata(request: Extract<V5Request, { type: "send_metadata" }>): Answer {
    const { session } = this.#broadcastOf(request);
    const { eventName, payload } = request.data;
    const text = typeof payload === "string" ? payload : JSON.stringify(payload ?? null);
    // Converted to text, so that depth and members are bounded whatever form it came in.
    const values = readJsonObject(text);
    if (!HANDLERS.includes(eventName)) throw wrong("data.eventName");
    if (values === null || !isObject(values as Json)) throw wrong("data.payload");
    if (!this.#deps.whip.sendMetadata(session, eventName, values)) throw new V5Fault(107002, "No broadcast is running");
    return { reply: {} };
  }

  #requireSession(sessionId: string | null): SignedIn {
    if (this.#signedIn === null || sessionId === null) throw new V5Fault(107001);
    if (sessionId !== this.#signedIn.sessionId) throw new V5Fault(107002);
    return this.#signedIn;
  }

  /** The running broadcast, identified by the socket; a peer id in the request must be one of its two. */
  #broadcastOf(parties: { readonly sender_peer: string | null; readonly receiver_peer: string | null }): Broadcast {
    if (this.#signedIn === null) throw new V5Fault(107001);
    if (this.#broadcast === null) throw new V5Fault(107002, "No broadcast is running");
    const { peerId, serverPeer } = this.#broadcast.pushes;
    const named = [parties.sender_peer, parties.receiver_peer].filter((id) => id !== null);
    const isOther = named.length > 0 && !named.some((id) => id === peerId || id === serverPeer);
    if (isOther) throw new V5Fault(107002, "The broadcast of that peer has ended");
    return this.#broadcast;
  }

  /** `isLeft`: it was not ended deliberately. */
  #endBroadcast({ session, pushes }: Broadcast, isLeft = false): void {
    this.#broadcast = null;
    pushes.stop();
    this.#deps.whip.end(session, isLeft);
  }
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
