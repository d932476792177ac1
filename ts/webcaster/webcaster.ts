// The public API: a Webcaster prepares media, previews it, broadcasts it by WHIP, and reports events. Names and calls
// are those of the deployed v6 clients; additions are marked in docs/broadcasting.md.
import { Broadcast, type ReconnectionState } from "./broadcast.ts";
import { constraintsOf } from "./capture.ts";
import { type Config, completeConfig, type MutedConfig, type ResultConfig, type TrackKind } from "./config.ts";
import { MediaInput } from "./media-input.ts";
import { watchPage } from "./page-watch.ts";
import { asWebcasterError, WebcasterError } from "./pure/errors.ts";
import type { Metrics } from "./pure/metrics.ts";
import { next, resumes, type StateEvent, type WebcasterState } from "./pure/state.ts";
import { endpointUrl } from "./pure/stream-name.ts";
import { CONFIG_MEMBERS, nameUnknownMembers } from "./unknown-members.ts";
import type { UpstreamOptions, UpstreamQuality } from "./upstream.ts";
import type { MetadataHandlerName } from "./whip-session.ts";

/** Details of the connection. */
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
  /** Called once for every change of `state`; `getUpstreamStatus` returns the details of the connection. */
  onStateChange: (state: WebcasterState) => void = () => {};
  /** The browser's connection state. */
  onConnectionStateChange: (state: RTCPeerConnectionState) => void = () => {};
  onReconnectionStateChange: (state: ReconnectionState) => void = () => {};
  /** An error outside of a call; a call that fails rejects its promise, and calls this as well. */
  onError: (error: WebcasterError) => void = () => {};
  /** Called each second of a broadcast. */
  onMetrics: (metrics: Metrics) => void = () => {};

  readonly #config: ResultConfig;
  #state: WebcasterState = "idle";
  #input: MediaInput | null = null;
  #broadcast: Broadcast | null = null;
  /** Resolves once the service knows of the latest stop, or cannot be reached. */
  #stopped: Promise<void> = Promise.resolve();
  /** Counts of calls, by which recover() detects those that were made while it waited. */
  #stops = 0;
  #disposals = 0;
  /** The recover() that runs, unless dispose() was called meanwhile. */
  #recovery: Promise<void> | null = null;
  #quality: UpstreamQuality;
  #muted: Required<MutedConfig>;
  #previews = new Set<HTMLVideoElement>();
  #unwatch = () => {};

  /** Throws `config_invalid`; unknown members are only named in the console. Requests no permission yet. */
  constructor(config: Config) {
    this.#config = completeConfig(config);
    nameUnknownMembers("Webcaster", config, CONFIG_MEMBERS);
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

  /** Opens camera and microphone, or uses the page's own stream. Must be called first. Returns all settings with their
   *  values. */
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
      this.#advance("setup");
      try {
        await input.open();
        if (this.#input !== input) throw new WebcasterError("wrong_state", { detail: "dispose() was called" });
      } catch (error) {
        input.dispose(false);
        if (this.#input === input) {
          this.#input = null;
          this.#advance("media_refused");
        }
        throw error;
      }
      this.#advance("media_opened");
      return this.#config;
    });
  }

  /** Shows the media in a `<video>`, by element or id; by default in `previewVideoElId`. The element is muted. */
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

  /** Ends the preview. */
  stopPreview(): void {
    for (const video of this.#previews) video.srcObject = null;
    this.#previews.clear();
  }

  /** Goes live: resolves when media flows, rejects when it was refused or failed. */
  startBroadcast(): Promise<void> {
    return this.#reporting("connection_refused", async () => {
      this.#media();
      this.#require("start");
      const broadcast: Broadcast = new Broadcast(
        this.#hostOf(() => this.#broadcast === broadcast),
        this.#config.reconnect,
      );
      this.#broadcast = broadcast;
      this.#advance("start");
      this.#unwatch();
      this.#unwatch = watchPage({
        onLeave: () => this.#leave(broadcast),
        onBack: () => broadcast.wake(),
      });
      await broadcast.start();
    });
  }

  /** Ends the broadcast; media and previews stay. Resolves when the service knows, or when there was no broadcast. */
  async stopBroadcast(): Promise<void> {
    this.#stops += 1;
    const broadcast = this.#broadcast;
    if (broadcast !== null && next(this.#state, "stop") !== null) this.#stopped = this.#stop(broadcast);
    await this.#stopped;
  }

  async #stop(broadcast: Broadcast): Promise<void> {
    this.#broadcast = null;
    this.#unwatch();
    const wasReconnecting = this.#state === "reconnecting";
    this.#advance("stop");
    if (wasReconnecting) this.#tell(() => this.onReconnectionStateChange("idle"));
    await broadcast.stop();
    if (this.#state === "stopping") this.#advance("stopped");
  }

  /** Ends everything and returns to the state before `setup`. The page's own tracks are stopped only with
   *  `withMediaStream`. */
  async dispose(withMediaStream = false): Promise<void> {
    this.#disposals += 1;
    // It fails now, perhaps only when the browser's permission prompt is answered: a new one need not wait for that.
    this.#recovery = null;
    const stopped = this.stopBroadcast();
    this.stopPreview();
    this.#input?.dispose(withMediaStream);
    this.#input = null;
    await stopped;
    // Otherwise setup() was called meanwhile: it was idle already, or another dispose() came first.
    if (this.#input === null) this.#advance("dispose");
  }

  /** Restarts everything: media, previews, and the broadcast if one was running or had failed. For pages that need no
   *  finer control. `disposeMediaStream` also stops the page's own tracks, which then cannot be sent again. A second
   *  call while one is running only waits for it. After `stopBroadcast` meanwhile no broadcast is started; after `dispose`
   *  it rejects. */
  recover(disposeMediaStream = false): Promise<void> {
    if (this.#recovery !== null) return this.#recovery;
    const recovery: Promise<void> = this.#recover(disposeMediaStream).finally(() => {
      if (this.#recovery === recovery) this.#recovery = null;
    });
    this.#recovery = recovery;
    return recovery;
  }

  async #recover(disposeMediaStream: boolean): Promise<void> {
    const wasBroadcasting = resumes(this.#state);
    const previews = [...this.#previews];
    const disposed = this.dispose(disposeMediaStream);
    const [stops, disposals] = [this.#stops, this.#disposals];
    await disposed;
    if (disposals !== this.#disposals) throw new WebcasterError("wrong_state", { detail: "dispose() was called" });
    await this.setup();
    for (const video of previews) this.startPreview(video);
    if (wasBroadcasting && stops === this.#stops) await this.startBroadcast();
  }

  /** Mutes or unmutes; omitted members are unchanged. Muted audio is sent as silence, muted video as black. */
  setMuted(muted: MutedConfig): void {
    this.#muted = { audio: muted.audio ?? this.#muted.audio, video: muted.video ?? this.#muted.video };
    this.#input?.setMuted(this.#muted);
  }

  isMuted(): Required<MutedConfig> {
    return this.#muted;
  }

  /** Switches to another track without a new connection: a canvas, a mixer, a screen. The page has to stop it. */
  setTrack(track: MediaStreamTrack): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().setTrack(track));
  }

  /** Switches to another camera or microphone; without an id the browser chooses. */
  setDevice(kind: TrackKind, deviceId: string | null = null): Promise<void> {
    return this.#reporting("media_failed", () => this.#media().setDevice(kind, deviceId));
  }

  /** Lets the broadcaster choose a screen, which is sent instead of the camera until sharing ends. */
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

  /** Changes the limits of what is sent, also while live; omitted members are unchanged. */
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

  /** Sends metadata to players and upstreams as an RTMP data message: an object at most 6 deep, 16 KiB. */
  sendMetadata(handlerName: MetadataHandlerName, metadata: Readonly<Record<string, unknown>>): Promise<void> {
    return this.#reporting("request_refused", async () => {
      const session = this.#broadcast?.upstream?.session;
      if (!session) throw new WebcasterError("not_live");
      await session.sendMetadata(handlerName, metadata);
    });
  }

  /** The stream being sent and shown. */
  getMediaStream(): MediaStream | null {
    return this.#input?.stream ?? null;
  }

  /** The actual settings of camera and microphone. */
  getMediaStreamSettings(): MediaStreamSettings {
    const input = this.#media();
    return {
      audio: input.track("audio")?.getSettings() ?? null,
      video: input.track("video")?.getSettings() ?? null,
    };
  }

  /** The constraints for the browser; null when the page supplies its own stream. */
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

  /** The page is being left. It may be restored (back-forward cache), and can then start again. */
  #leave(broadcast: Broadcast): void {
    if (this.#broadcast !== broadcast || next(this.#state, "stop") === null) return;
    this.#broadcast = null;
    this.#unwatch();
    broadcast.drop();
    this.#advance("stop");
    this.#advance("stopped");
  }

  /** The broadcast's view of this Webcaster; calls have no effect once another broadcast is running. */
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
      advance: whileCurrent((event) => this.#advance(event)),
      onConnectionState: whileCurrent((state) => this.#tell(() => this.onConnectionStateChange(state))),
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

  #advance(event: StateEvent): void {
    const state = next(this.#state, event);
    if (state === null || state === this.#state) return;
    this.#state = state;
    if (state === "failed") this.#unwatch();
    this.#tell(() => this.onStateChange(state));
  }

  /** An exception in the page's callback is reported like any error of the page, and ends no broadcast. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      reportError(error);
    }
  }

  /** A call that fails reports the error to its caller, and to `onError`. */
  async #reporting<T>(reason: Parameters<typeof asWebcasterError>[1], act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (thrown) {
      const error = asWebcasterError(thrown, reason);
      // A page that stops a broadcast itself needs no notification.
      if (error.reason !== "stopped") this.#tell(() => this.onError(error));
      throw error;
    }
  }
}

/** Whether two channels are requested, in any form of a constraint. */
function isTwo(channels: ConstrainULong | undefined): boolean {
  const wanted = typeof channels === "object" ? (channels.exact ?? channels.ideal) : channels;
  return wanted === 2;
}
