// RtcUser: the calls and events of the v5 API for pages that still use it, on the media of the current client and the
// deprecated signalling. New pages use Webcaster.
import type { MutedConfig, TrackKind } from "../config.ts";
import { DeviceUtils } from "../device-utils.ts";
import { MediaInput } from "../media-input.ts";
import { unlessAborted } from "../pause.ts";
import { WebcasterError } from "../pure/errors.ts";
import { nameUnknownMembers, RTC_USER_MEMBERS, TARGET_MEMBERS } from "../unknown-members.ts";
import {
  type BroadcastStatus,
  Emitter,
  type EndedBroadcast,
  type RtcUserEvent,
  type RtcUserEventName,
  type RtcUserFault,
} from "./events.ts";
import { PEER_FAILED, Peer } from "./peer.ts";
import { inputOf, type RtcUserConfig, type StartOptions, startOf } from "./settings.ts";
import { CONNECTION_LOST, type Push, RtcUserError, Signalling } from "./signalling.ts";
import { StatusOrder } from "./status-order.ts";

/** How long the service's offer may take from the click on, ms: devices are opened and the customer is asked
 *  meanwhile. */
const OFFER_LIMIT_MS = 60_000;
/** How long after the loss of its media a broadcast still waits for the service to say why, ms. */
const REASON_LIMIT_MS = 2_000;
/** The client's own errors, in addition to those of the service. */
const NOT_SIGNED_IN = 107001;
const BROADCAST_RUNS = 102001;
const UNFORESEEN = 101000;

export type { RtcUserConfig, StartOptions, TranscodingTargets } from "./settings.ts";

interface Session {
  readonly id: string;
  readonly iceServers: readonly RTCIceServer[];
}

/** @deprecated Use `Webcaster`: it broadcasts by WHIP, reconnects and measures. */
export class RtcUser {
  readonly #events = new Emitter();
  #config: RtcUserConfig = {};
  #muted: Required<MutedConfig> = { audio: false, video: false };
  #input: MediaInput | null = null;
  /** The input once its devices are open: calls that come meanwhile wait for the same ones. */
  #opened: Promise<MediaInput> | null = null;
  /** The settings that they were opened with. */
  #openedFor = this.#config;
  /** Of the latest startPreview, whose devices may still be opening. */
  #preview: { readonly video: HTMLVideoElement } | null = null;
  #signalling: Signalling | null = null;
  /** Counts sign-ins and sign-outs: one of them ends a sign-in before it that is not complete. */
  #signIns = 0;
  #session: Session | null = null;
  #peer: Peer | null = null;
  /** Of the peer's broadcast. */
  #order: StatusOrder | null = null;
  /** A start that has not succeeded yet; `stop` is aborted with the reason why it must not. */
  #starting: { readonly stop: AbortController; readonly over: Promise<void> } | null = null;
  #onOffer: ((push: Push) => void) | null = null;

  on<Name extends RtcUserEventName>(name: Name, handler: (event: RtcUserEvent<Name>) => void): this {
    this.#events.on(name, handler);
    return this;
  }

  off<Name extends RtcUserEventName>(name: Name, handler: (event: RtcUserEvent<Name>) => void): this {
    this.#events.off(name, handler);
    return this;
  }

  /** Whether this browser can broadcast at all. */
  async checkSupport(): Promise<boolean> {
    const codecs = globalThis.RTCRtpSender?.getCapabilities?.("video")?.codecs ?? [];
    const hasVideo = codecs.some(({ mimeType }) => mimeType.toLowerCase() === "video/h264");
    return hasVideo && globalThis.isSecureContext && DeviceUtils.isSupported("getUserMedia");
  }

  /** All cameras and microphones. */
  async getDevices(): Promise<{ readonly audio: MediaDeviceInfo[]; readonly video: MediaDeviceInfo[] }> {
    const devices = await DeviceUtils.getAvailableMediaDevices();
    return {
      audio: devices.filter(({ kind }) => kind === "audioinput"),
      video: devices.filter(({ kind }) => kind === "videoinput"),
    };
  }

  /** Takes effect with the next `startPreview` or `startBroadcast`, except on a broadcast that already runs. */
  setConfig(config: RtcUserConfig): void {
    nameUnknownMembers("RtcUser.setConfig", config, RTC_USER_MEMBERS);
    this.#config = { ...this.#config, ...config };
  }

  /** Shows camera and microphone in a `<video>`, given as element or by its id. */
  async startPreview(element: HTMLVideoElement | string): Promise<void> {
    const video = typeof element === "string" ? document.getElementById(element) : element;
    if (!(video instanceof HTMLVideoElement)) throw new WebcasterError("preview_missing", { detail: String(element) });
    // Set before the devices are open: pages await nothing, and a signIn meanwhile leaves a preview its devices.
    const preview = { video };
    if (this.#preview !== null && this.#preview.video !== video) this.#preview.video.srcObject = null;
    this.#preview = preview;
    try {
      const { stream } = await this.#open();
      if (this.#preview !== preview) return;
      Object.assign(video, { muted: true, playsInline: true, autoplay: true, srcObject: stream });
      void video.play().catch(() => {});
    } catch (error) {
      // Whoever stopped the preview meanwhile needs no notification.
      if (this.#preview !== preview) return;
      this.#preview = null;
      throw error;
    }
  }

  /** Ends the preview; the devices are released unless a broadcast uses them. */
  stopPreview(): void {
    if (this.#preview !== null) this.#preview.video.srcObject = null;
    this.#preview = null;
    if (this.#peer === null && this.#starting === null) this.#closeInput();
  }

  muteAudio(isMuted = true): void {
    this.#mute({ ...this.#muted, audio: isMuted });
  }

  muteVideo(isMuted = true): void {
    this.#mute({ ...this.#muted, video: isMuted });
  }

  /** `server`: the service, `https://host` or `wss://host/p/webrtcws`; `jwt`: a web token. Emits SignInSuccess or
   *  SignInError, and resolves to whether it succeeded. */
  async signIn({ server, jwt }: { readonly server: string; readonly jwt: string }): Promise<boolean> {
    return await this.#saying("SignInError", async () => {
      this.#close();
      const signIn = this.#signIns;
      const signalling = await Signalling.open(server);
      if (signIn !== this.#signIns) {
        signalling.close();
        throw new RtcUserError(NOT_SIGNED_IN, "The page signed out, or in again", "SessionError");
      }
      signalling.onPush = (push) => this.#handlePush(push);
      signalling.onLost = () => this.#handleLost(signalling);
      this.#signalling = signalling;
      try {
        const reply = await signalling.call("sign_in", { jwt, api_version: "5" });
        const iceServers = (reply.ice_servers ?? []) as readonly RTCIceServer[];
        this.#session = { id: String(reply.session_id), iceServers };
        this.#events.emit("SignInSuccess", { userId: String(reply.user_id) });
      } catch (error) {
        if (this.#signalling === signalling) this.#close();
        throw error;
      }
    });
  }

  /** Ends a broadcast as well, and a sign-in that is not complete. */
  async signOut(): Promise<void> {
    const { id } = this.#session ?? {};
    const signIn = this.#signIns;
    if (id !== undefined) await this.#signalling?.call("sign_out", { session_id: id }).catch(() => {});
    if (signIn === this.#signIns) this.#close();
  }

  /** Goes live where the token says. Emits StartBroadcastSuccess when the service has the answer to its offer, or
   *  StartBroadcastError, and resolves to whether it succeeded; BroadcastStatus reports the rest. */
  async startBroadcast(options: StartOptions): Promise<boolean> {
    nameUnknownMembers("RtcUser transcodingTargets", options?.transcodingTargets, TARGET_MEMBERS);
    return await this.#saying("StartBroadcastError", async () => {
      const [signalling, session] = [this.#signalling, this.#session];
      if (signalling === null || session === null)
        throw new RtcUserError(NOT_SIGNED_IN, "Sign in first", "SessionError");
      if (this.#peer !== null || this.#starting !== null)
        throw new RtcUserError(BROADCAST_RUNS, "A broadcast is already running");
      const stop = new AbortController();
      const over = this.#start(signalling, session, options, stop.signal).finally(() => {
        this.#starting = null;
      });
      this.#starting = { stop, over };
      await over;
    });
  }

  /** From the devices to the answer that the service has accepted. */
  async #start(signalling: Signalling, session: Session, options: StartOptions, stop: AbortSignal): Promise<void> {
    const offered = this.#offer();
    let accepted: Peer | null = null;
    try {
      const { stream } = await unlessAborted(this.#open(), stop);
      this.#say("signalling");
      // Awaited even if the start is stopped: the reply names what the service then has to end.
      const reply = await signalling.call("start_broadcast", startOf(session.id, stream, options, this.#config));
      const order = new StatusOrder((status) => this.#peer === peer && this.#say(status));
      const peer: Peer = new Peer(
        {
          signalling,
          sessionId: session.id,
          iceServers: session.iceServers,
          stream,
          maxVideoBitrateBps: this.#config.videoBitrate ?? null,
          onConnected: () => order.handleConnected(),
          // The service closes the media first, and says why after that.
          onLost: () => setTimeout(() => this.#fail(peer, mediaLost()), REASON_LIMIT_MS),
        },
        String(reply.peer_id),
      );
      accepted = peer;
      stop.throwIfAborted();
      this.#peer = peer;
      this.#order = order;
      const answered = offered.then((offer) => {
        stop.throwIfAborted();
        return peer.answer(offer);
      });
      // A call on a connection that is closed meanwhile may never settle.
      await unlessAborted(answered, stop);
      this.#events.emit("StartBroadcastSuccess", null);
      order.handleStarted();
    } catch (error) {
      // Otherwise the service would wait for media, and refuse other starts until it gives up.
      const stopped = accepted?.stop();
      this.#end();
      await stopped?.catch(() => {});
      throw error;
    } finally {
      this.#onOffer = null;
    }
  }

  /** Emits StopBroadcastSuccess or StopBroadcastError, and resolves to whether it succeeded. A start that this stops
   *  emits its StartBroadcastError first, once the service has decided about it. */
  async stopBroadcast(): Promise<boolean> {
    return await this.#saying("StopBroadcastError", async () => {
      const starting = this.#starting;
      const stopped = this.#peer?.stop();
      this.#end();
      await stopped;
      await starting?.over.catch(() => {});
      this.#events.emit("StopBroadcastSuccess", null);
    });
  }

  /** Runs a call; an error is emitted as an event and never thrown, since pages of the v5 API await nothing. */
  async #saying(
    error: "SignInError" | "StartBroadcastError" | "StopBroadcastError",
    act: () => Promise<void>,
  ): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (reason) {
      this.#events.emit(error, faultOf(reason));
      return false;
    }
  }

  #handlePush(push: Push): void {
    const peer = this.#peer;
    if (push.type === "sdp_message") this.#onOffer?.(push);
    if (peer === null || !peer.owns(push)) return;
    if (push.type === "ice_candidate") {
      void peer.addCandidate((push.data as { readonly candidate: RTCIceCandidateInit }).candidate);
    } else if (push.type === "rtmp_status") {
      this.#handleStatus(peer, push.data as StatusPush);
    }
  }

  #handleStatus(peer: Peer, { status, message, number, ended }: StatusPush): void {
    const text = ended === undefined ? "Unknown reason" : `${ended.title}: ${ended.reason}`;
    if (status === "error")
      this.#fail(peer, new RtcUserError(number ?? UNFORESEEN, text, "RTMPError", {}, ended ?? null));
    else this.#order?.handleStatus(message === "reconnecting" ? "reconnecting" : "broadcasting");
  }

  #handleLost(signalling: Signalling): void {
    if (this.#signalling !== signalling) return;
    const peer = this.#peer;
    const fault = new RtcUserError(CONNECTION_LOST, "The connection to the service is lost");
    if (peer !== null) this.#fail(peer, fault);
    this.#signalling = null;
    this.#session = null;
  }

  /** The broadcast has ended, but not by this client. While it starts, StartBroadcastError says so. */
  #fail(peer: Peer, error: RtcUserError): void {
    if (this.#peer !== peer) return;
    const isStarting = this.#starting !== null;
    this.#end(error);
    if (!isStarting) this.#events.emit("BroadcastError", faultOf(error));
  }

  #say(status: BroadcastStatus): void {
    this.#events.emit("BroadcastStatus", { status });
  }

  /** The next offer, which may arrive before the reply has been handled. */
  #offer(): Promise<Push> {
    const offered = new Promise<Push>((resolve, reject) => {
      const timer = setTimeout(() => reject(new RtcUserError(PEER_FAILED, "No offer came")), OFFER_LIMIT_MS);
      this.#onOffer = (push) => {
        clearTimeout(timer);
        resolve(push);
      };
    });
    offered.catch(() => {});
    return offered;
  }

  #open(): Promise<MediaInput> {
    const isSending = this.#peer !== null || this.#starting !== null;
    if (this.#opened !== null && (isSending || this.#openedFor === this.#config)) return this.#opened;
    this.#closeInput();
    this.#openedFor = this.#config;
    const host = {
      send: async (kind: TrackKind, track: MediaStreamTrack | null) => this.#peer?.replace(kind, track),
      reportError: (error: WebcasterError) => this.#events.emit("BroadcastError", faultOf(error)),
    };
    const input = new MediaInput(host, inputOf(this.#config, this.#muted), this.#muted);
    this.#input = input;
    this.#opened = this.#openInput(input);
    return this.#opened;
  }

  async #openInput(input: MediaInput): Promise<MediaInput> {
    const failure = await input.open().then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (this.#input !== input) {
      // Closed meanwhile, perhaps in favour of other settings.
      if (this.#opened === null) throw new WebcasterError("stopped");
      return await this.#opened;
    }
    if (failure !== null) {
      this.#closeInput();
      throw failure.error;
    }
    // A preview that was open for other settings shows the same as is sent.
    if (this.#preview !== null) this.#preview.video.srcObject = input.stream;
    return input;
  }

  #mute(muted: Required<MutedConfig>): void {
    this.#muted = muted;
    this.#input?.setMuted(muted);
  }

  /** `reason`: why a start that has not succeeded yet is stopped by this. */
  #end(reason: Error = new WebcasterError("stopped")): void {
    this.#starting?.stop.abort(reason);
    const peer = this.#peer;
    this.#peer = null;
    this.#order = null;
    peer?.close();
    if (this.#preview === null) this.#closeInput();
  }

  #closeInput(): void {
    this.#input?.dispose(false);
    this.#input = null;
    this.#opened = null;
  }

  #close(): void {
    this.#signIns += 1;
    this.#end();
    this.#signalling?.close();
    this.#signalling = null;
    this.#session = null;
  }
}

interface StatusPush {
  readonly status: string;
  readonly message?: string;
  readonly number?: number;
  readonly ended?: EndedBroadcast;
}

function mediaLost(): RtcUserError {
  return new RtcUserError(PEER_FAILED, "The connection to the service is lost");
}

function faultOf(error: unknown): RtcUserFault {
  const code = error instanceof RtcUserError || error instanceof WebcasterError ? error.code : UNFORESEEN;
  const message = error instanceof Error ? error.message : String(error);
  const ended = error instanceof RtcUserError && error.ended !== null ? { ended: error.ended } : {};
  return { code, text: message, message, ...ended };
}
