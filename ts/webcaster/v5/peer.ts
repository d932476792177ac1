// The WebRTC side of a v5 broadcast: answers the service's offer with the page's tracks.
import type { TrackKind } from "../config.ts";
import { type Push, RtcUserError, type Signalling } from "./signalling.ts";

/** No SDP arrived, or no connection was established. */
export const PEER_FAILED = 7001;

export interface PeerHost {
  readonly signalling: Signalling;
  /** Of the sign_in. */
  readonly sessionId: string;
  readonly iceServers: readonly RTCIceServer[];
  readonly stream: MediaStream;
  /** Bits per second; null leaves it to the browser. */
  readonly maxVideoBitrateBps: number | null;
  /** ICE and DTLS are complete. */
  onConnected(): void;
  /** The service closed it, or the network is gone. */
  onLost(): void;
}

export class Peer {
  readonly #host: PeerHost;
  readonly #peerId: string;
  #serverPeer: string | null = null;
  #connection: RTCPeerConnection | null = null;
  /** Candidates that arrived before the offer. */
  #early: RTCIceCandidateInit[] = [];
  #stopped: Promise<unknown> | null = null;

  constructor(host: PeerHost, peerId: string) {
    this.#host = host;
    this.#peerId = peerId;
  }

  owns(push: Push): boolean {
    return push.receiver_peer === this.#peerId;
  }

  /** Answers the offer; resolves when the service has accepted the answer. */
  async answer({ sender_peer = "", data }: Push): Promise<void> {
    const { sdp } = data as { readonly sdp: RTCSessionDescriptionInit };
    const connection = new RTCPeerConnection({ iceServers: [...this.#host.iceServers] });
    this.#connection = connection;
    this.#serverPeer = sender_peer;
    connection.onconnectionstatechange = () => {
      if (connection.connectionState === "connected") this.#host.onConnected();
      if (connection.connectionState === "failed") this.#host.onLost();
    };
    await connection.setRemoteDescription(sdp);
    for (const candidate of this.#early.splice(0)) await this.addCandidate(candidate);
    for (const transceiver of connection.getTransceivers()) await this.#send(transceiver);
    await connection.setLocalDescription(await connection.createAnswer());
    const dtls = connection.getSenders()[0]?.transport;
    // An end by the service is visible here immediately, and in the connection's state only at the next ICE
    // check.
    dtls?.addEventListener("statechange", () => {
      if (dtls.state === "closed" && this.#connection === connection) this.#host.onLost();
    });
    connection.onicecandidate = ({ candidate }) => {
      if (candidate === null || candidate.candidate === "") return;
      const { sdpMLineIndex, sdpMid, candidate: text } = candidate;
      void this.#signal({ sdpMLineIndex, sdpMid, candidate: text }).catch(() => {});
    };
    await this.#signal({ type: "answer", sdp: connection.localDescription?.sdp ?? "" });
  }

  async addCandidate(candidate: RTCIceCandidateInit): Promise<void> {
    if (this.#connection?.remoteDescription) await this.#connection.addIceCandidate(candidate).catch(() => {});
    else this.#early.push(candidate);
  }

  /** Sends another track of this kind, or none. */
  async replace(kind: TrackKind, track: MediaStreamTrack | null): Promise<void> {
    const transceivers = this.#connection?.getTransceivers() ?? [];
    await transceivers.find((of) => kindOf(of) === kind)?.sender.replaceTrack(track);
  }

  /** Tells the service, once, that the broadcast is over; rejects if it does not accept that. Called before `close`, so
   *  that the service knows the reason. */
  stop(): Promise<unknown> {
    const { signalling, sessionId } = this.#host;
    this.#stopped ??= signalling.call("stop_broadcast", { session_id: sessionId, ...this.#parties() });
    return this.#stopped;
  }

  close(): void {
    const connection = this.#connection;
    this.#connection = null;
    connection?.close();
  }

  async #send(transceiver: RTCRtpTransceiver): Promise<void> {
    const { stream, maxVideoBitrateBps } = this.#host;
    const kind = kindOf(transceiver);
    const [track] = kind === "video" ? stream.getVideoTracks() : stream.getAudioTracks();
    if (track === undefined) throw new RtcUserError(PEER_FAILED, `There is no ${kind} to send`, "GeneralError");
    transceiver.direction = "sendonly";
    await transceiver.sender.replaceTrack(track);
    if (kind === "audio" || maxVideoBitrateBps === null) return;
    const parameters = transceiver.sender.getParameters();
    for (const encoding of parameters.encodings) encoding.maxBitrate = maxVideoBitrateBps;
    if (parameters.encodings.length > 0) await transceiver.sender.setParameters(parameters);
  }

  async #signal(data: object): Promise<void> {
    await this.#host.signalling.call("signaling_message", { ...this.#parties(), data });
  }

  /** The peer ids that identify the broadcast to the service; its own is not known before its offer. */
  #parties(): { readonly sender_peer: string; readonly receiver_peer?: string } {
    return { sender_peer: this.#peerId, ...(this.#serverPeer === null ? {} : { receiver_peer: this.#serverPeer }) };
  }
}

function kindOf({ receiver }: RTCRtpTransceiver): TrackKind {
  return receiver.track.kind === "audio" ? "audio" : "video";
}
