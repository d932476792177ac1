// The public face: a Webcaster prepares media, shows it, broadcasts it by WHIP, and says what happens. Names and calls
// are those of the deployed v6 clients; what is new is marked in docs/broadcasting.md.
import { Broadcast, type ReconnectionState } from "./broadcast.ts";
import { constraintsOf } from "./capture.ts";
import { type Config, completeConfig, type MutedConfig, type ResultConfig, type TrackKind } from "./config.ts";
import { MediaInput } from "./media-input.ts";
import { watchPage } from "./page-watch.ts";
import { asWebcasterError, WebcasterError } from "./pure/errors.ts";
import type { Metrics } from "./pure/metrics.ts";
import { isBroadcasting, next, type StateEvent, type WebcasterState } from "./pure/state.ts";
import { endpointUrl } from "./pure/stream-name.ts";
import type { UpstreamOptions, UpstreamQuality } from "./upstream.ts";
import type { MetadataHandlerName } from "./whip-session.ts";

/** What the connection is doing, for people who look closely. */
export interface UpstreamConnectionStatus {
  readonly state: WebcasterState;
  readonly iceState: RTCIceConnectionState | null;
  readonly gatheringState: RTCIceGatheringState | null;
  readonly connectionState: RTCPeerConnectionState | null;
  readonly localDescription: RTCSessionDescription | null;
  readonly remoteDescription: RTCSessionDescription | null;
}

export interface MediaStreamSettings {
  readonly audio: MediaTrackSettings | null;
  readonly video: MediaTrackSettings | null;
}

export class Webcaster {
  /** Called after every change of `state` or of the connection; `getUpstreamStatus` tells all of it. */
  onStateChange: (state: WebcasterState) => void = () => {};
  /** The browser's word for the connection. */
  onConnectionStateChange: (state: RTCPeerConnectionState) => void = () => {};
  onReconnectionStateChange: (state: ReconnectionState) => void = () => {};
  /** What went wrong outside of a call; a call that fails rejects its promise, and calls this as well. */
  onError: (error: WebcasterError) => void = () => {};
  /** Each second of a broadcast. */
  onMetrics: (metrics: Metrics) => void = () => {};

  readonly #config: ResultConfig;
  #state: WebcasterState = "idle";
  #input: MediaInput | null = null;
  #broadcast: Broadcast | null = null;
  #quality: UpstreamQuality;
  #muted: Required<MutedConfig>;
  #previews = new Set<HTMLVideoElement>();
  #unwatch = () => {};

  /** Throws `config_invalid`. Nothing is asked for yet. */
  constructor(config: Config) {
    this.#config = completeConfig(config);
    const { muted, broadcastCfg } = this.#config.inputCfg;
    this.#muted = muted;
    this.#quality = {
      maxVideoBitrateBps: broadcastCfg.maxVideoBitrateBps,
      maxEncodingFramerate: broadcastCfg.maxEncodingFramerate,
      scaleResolutionDownBy: 1,
      maxAudioBitrateBps: broadcastCfg.maxAudioBitrateBps ?? null,
    };
  }

  get state(): WebcasterState {
    return this.#state;
  }

  /** Asks for camera and microphone, or takes the page's own stream. Comes first. Gives every setting with its value. */
  setup(): Promise<ResultConfig> {
    return this.#reporting("media_failed", async () => {
      this.#require("setup");
      const input = new MediaInput(
        {
          send: async (kind, track) => this.#broadcast?.upstream?.send(kind, track),
          reportError: (error) => this.#tell(() => this.onError(error)),
        },
        this.#config.inputCfg,
        this.#muted,
      );
      this.#input = input;
      this.#go("setup");
      try {
        await input.open();
      } catch (error) {
        if (this.#input === input) {
          this.#input = null;
          this.#go("media_refused");
        }
        throw error;
      }
      if (this.#input !== input) throw new WebcasterError("wrong_state", { detail: "dispose() was called" });
      this.#go("media_opened");
      return this.#config;
    });
  }

  /** Shows the media in a `<video>`, by element or id; without one, by `previewVideoElId`. It is muted there. */
  startPreview(element: HTMLVideoElement | string | null = this.#config.previewVideoElId): void {
    const { stream } = this.#media();
    const video = typeof element === "string" ? document.getElementById(element) : element;
    if (!(video instanceof HTMLVideoElement)) throw new WebcasterError("preview_missing", { detail: String(element) });
    video.muted = true;
    video.playsInline = true;
    video.autoplay = true;
    video.srcObject = stream;
    void video.play().catch(() => {});
    this.#previews.add(video);
  }

  /** Shows nothing any more. */
  stopPreview(): void {
    for (const video of this.#previews) video.srcObject = null;
    this.#previews.clear();
  }

  /** Goes live: resolves when media flows, rejects when it was refused or cannot. */
  startBroadcast(): Promise<void> {
    return this.#reporting("connection_refused", async () => {
      this.#media();
      this.#require("start");
      const broadcast: Broadcast = new Broadcast(
        this.#hostOf(() => this.#broadcast === broadcast),
        this.#config.reconnect,
      );
      this.#broadcast = broadcast;
      this.#go("start");
      this.#unwatch();
      this.#unwatch = watchPage({
        onLeave: () => this.#leave(broadcast),
        onBack: () => broadcast.wake(),
      });
      await broadcast.start();
    });
  }

  /** Ends the broadcast; media and previews stay. Resolves when the service knows, also when nothing was broadcast. */
  async stopBroadcast(): Promise<void> {
    const broadcast = this.#broadcast;
    if (broadcast === null || next(this.#state, "stop") === null) return;
    this.#broadcast = null;
    this.#unwatch();
    const wasReconnecting = this.#state === "reconnecting";
    this.#go("stop");
    if (wasReconnecting) this.#tell(() => this.onReconnectionStateChange("idle"));
    await broadcast.stop();
    if (this.#state === "stopping") this.#go("stopped");
  }

  /** Ends everything, back to before `setup`. Tracks of the page's own are stopped only with `withMediaStream`. */
  async dispose(withMediaStream = false): Promise<void> {
    const stopped = this.stopBroadcast();
    this.stopPreview();
    this.#input?.dispose(withMediaStream);
    this.#input = null;
    await stopped;
    this.#go("dispose");
  }

  /** Everything anew: media, previews, and the broadcast if one ran or had failed. For a page that wants no details.
   *  `disposeMediaStream` also stops the page's own tracks, which cannot be sent again then. */
  async recover(disposeMediaStream = false): Promise<void> {
    const wasBroadcasting = isBroadcasting(this.#state) || this.#state === "failed";
    const previews = [...this.#previews];
    await this.dispose(disposeMediaStream);
    await this.setup();
    for (const video of previews) this.startPreview(video);
    if (wasBroadcasting) await this.startBroadcast();
  }

  /** Mutes or unmutes; a member that is left out stays as it is. Muted audio is silence, muted video black. */
  setMuted(muted: MutedConfig): void {
    this.#muted = { audio: muted.audio ?? this.#muted.audio, video: muted.video ?? this.#muted.video };
    this.#input?.setMuted(this.#muted);
  }

  isMuted(): Required<MutedConfig> {
    return this.#muted;
  }

  /** Sends another track from now on, without a new connection: a canvas, a mixer, a screen. The page stops it. */
  setTrack(track: MediaStreamTrack): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().setTrack(track));
  }

  /** Sends another camera or microphone from now on; without an id the browser's choice. */
  setDevice(kind: TrackKind, deviceId: string | null = null): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().setDevice(kind, deviceId));
  }

  /** Lets the broadcaster choose a screen, which is sent instead of the camera until the sharing ends. */
  startScreenShare(options: DisplayMediaStreamOptions = {}): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().startScreenShare(options));
  }

  /** Sends the camera again. */
  stopScreenShare(): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().stopScreenShare());
  }

  get isScreenShared(): boolean {
    return this.#input?.isScreenShared ?? false;
  }

  /** Changes what is sent at most, also while live; members that are left out stay as they are. */
  setUpstreamQuality(quality: Partial<UpstreamQuality>): Promise<UpstreamQuality> {
    return this.#reporting("config_invalid", async () => {
      const changed = { ...this.#quality, ...quality };
      for (const [name, value] of Object.entries(changed)) {
        const least = name === "scaleResolutionDownBy" ? 1 : Number.MIN_VALUE;
        const isOff = value === null && name === "maxAudioBitrateBps";
        if (!isOff && !(typeof value === "number" && value >= least && Number.isFinite(value))) {
          throw new WebcasterError("config_invalid", {
            detail: `${name} must be a number of at least ${Math.ceil(least)}`,
          });
        }
      }
      this.#quality = changed;
      await this.#broadcast?.setQuality(changed);
      return changed;
    });
  }

  getUpstreamQuality(): UpstreamQuality {
    return this.#quality;
  }

  /** Metadata for players and upstreams, an RTMP data message: an object at most 6 deep, 16 KiB. */
  sendMetadata(handlerName: MetadataHandlerName, metadata: Readonly<Record<string, unknown>>): Promise<void> {
    return this.#reporting("request_refused", async () => {
      const session = this.#broadcast?.upstream?.session;
      if (!session) throw new WebcasterError("not_live");
      await session.sendMetadata(handlerName, metadata);
    });
  }

  /** What is sent and shown. */
  getMediaStream(): MediaStream | null {
    return this.#input?.stream ?? null;
  }

  /** What camera and microphone really give. */
  getMediaStreamSettings(): MediaStreamSettings {
    const input = this.#media();
    return {
      audio: input.track("audio")?.getSettings() ?? null,
      video: input.track("video")?.getSettings() ?? null,
    };
  }

  /** What the browser is asked for; null when the page brings its own stream. */
  getConfiguredConstraints(): MediaStreamConstraints | null {
    const { mediaStream, mediaStreamCfg } = this.#config.inputCfg;
    return mediaStream === null ? constraintsOf(mediaStreamCfg) : null;
  }

  getUpstreamStatus(): UpstreamConnectionStatus {
    const connection = this.#broadcast?.upstream?.connection;
    return {
      state: this.#state,
      iceState: connection?.iceConnectionState ?? null,
      gatheringState: connection?.iceGatheringState ?? null,
      connectionState: connection?.connectionState ?? null,
      localDescription: connection?.localDescription ?? null,
      remoteDescription: connection?.remoteDescription ?? null,
    };
  }

  /** The page is being left. It may come back as it was (back-forward cache): then it can start again. */
  #leave(broadcast: Broadcast): void {
    if (this.#broadcast !== broadcast || next(this.#state, "stop") === null) return;
    this.#broadcast = null;
    this.#unwatch();
    broadcast.drop();
    this.#go("stop");
    this.#go("stopped");
  }

  /** What a broadcast sees of this Webcaster, as long as it is the one that runs. */
  #hostOf(isCurrent: () => boolean): ConstructorParameters<typeof Broadcast>[0] {
    const whileCurrent =
      <Args extends unknown[]>(act: (...args: Args) => void) =>
      (...args: Args) => {
        if (isCurrent()) act(...args);
      };
    const webcaster = this;
    return {
      get state() {
        return isCurrent() ? webcaster.#state : "idle";
      },
      options: () => this.#options(),
      go: whileCurrent((event) => this.#go(event)),
      onConnectionState: whileCurrent((state) => {
        this.#tell(() => this.onConnectionStateChange(state));
        this.#tell(() => this.onStateChange(this.#state));
      }),
      onChange: whileCurrent(() => this.#tell(() => this.onStateChange(this.#state))),
      onReconnectionState: whileCurrent((state) => this.#tell(() => this.onReconnectionStateChange(state))),
      onMetrics: whileCurrent((metrics) => this.#tell(() => this.onMetrics(metrics))),
      onError: whileCurrent((error) => this.#tell(() => this.onError(error))),
    };
  }

  #options(): Omit<UpstreamOptions, "signal"> {
    const { serverUrl, streamName, ingestUrl, auth, inputCfg } = this.#config;
    const { audioConstraints } = inputCfg.mediaStreamCfg;
    return {
      endpoint: endpointUrl({
        serverUrl,
        streamName,
        ingestUrl,
        transcodeAudioBitrateBps: inputCfg.broadcastCfg.transcodeAudioBitrateBps ?? null,
        isStereo: isTwo(audioConstraints?.channelCount),
      }),
      auth,
      stream: this.#media().stream,
      quality: this.#quality,
    };
  }

  #media(): MediaInput {
    if (this.#input === null || this.#state === "preparing") throw new WebcasterError("not_set_up");
    return this.#input;
  }

  #require(event: StateEvent): void {
    if (next(this.#state, event) !== null) return;
    throw new WebcasterError("wrong_state", { detail: `${event} while ${this.#state}` });
  }

  #go(event: StateEvent): void {
    const state = next(this.#state, event);
    if (state === null || state === this.#state) return;
    this.#state = state;
    if (state === "failed") this.#unwatch();
    this.#tell(() => this.onStateChange(state));
  }

  /** A fault of the page's own callback is shown as any fault of the page, and ends no broadcast. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      reportError(error);
    }
  }

  /** A call that fails says so to whoever called, and to `onError`. */
  async #reporting<T>(reason: Parameters<typeof asWebcasterError>[1], act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (thrown) {
      const error = asWebcasterError(thrown, reason);
      // A page that stops a broadcast knows.
      if (error.reason !== "stopped") this.#tell(() => this.onError(error));
      throw error;
    }
  }
}

/** Whether two channels are asked for, in any form of a constraint. */
function isTwo(channels: ConstrainULong | undefined): boolean {
  const wanted = typeof channels === "object" ? (channels.exact ?? channels.ideal) : channels;
  return wanted === 2;
}
