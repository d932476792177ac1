// The media of a Webcaster: which tracks are sent and shown, who opened them, muting, and replacements for tracks that
// end. Not the connection: `send` passes tracks to that.
import { constraintsOf, openDevices, openScreen } from "./capture.ts";
import type { MutedConfig, ResultConfig, TrackKind } from "./config.ts";
import { asWebcasterError, WebcasterError } from "./pure/errors.ts";

export interface MediaInputHost {
  /** Replaces the track being sent; null sends nothing. */
  send(kind: TrackKind, track: MediaStreamTrack | null): Promise<void>;
  reportError(error: WebcasterError): void;
}

export class MediaInput {
  /** The tracks being sent, and shown in previews: the tracks change, the stream object stays the same. */
  readonly stream = new MediaStream();
  readonly #host: MediaInputHost;
  readonly #config: ResultConfig["inputCfg"];
  #muted: Required<MutedConfig>;
  /** Tracks that were opened here, and must be stopped here. */
  readonly #ours = new Set<MediaStreamTrack>();
  readonly #current: Record<TrackKind, MediaStreamTrack | null> = { audio: null, video: null };
  /** The track that was sent before the screen, kept running so that it is back immediately. */
  #behindScreen: MediaStreamTrack | null = null;
  #screen: MediaStreamTrack | null = null;
  /** Kinds whose device is gone; the next one connected replaces it. */
  readonly #missing = new Set<TrackKind>();
  /** Counts the choices of a device or track, since a device may open later than one that was chosen after it. */
  #choices = 0;
  /** The latest choice of each kind that took effect. */
  readonly #chosen: Record<TrackKind, number> = { audio: 0, video: 0 };
  #isDisposed = false;

  constructor(host: MediaInputHost, config: ResultConfig["inputCfg"], muted: Required<MutedConfig>) {
    this.#host = host;
    this.#config = config;
    this.#muted = muted;
  }

  /** Opens the configured devices, or uses the page's own stream. */
  async open(): Promise<void> {
    const given = this.#config.mediaStream;
    const media = given ?? (await openDevices(constraintsOf(this.#config.mediaStreamCfg)));
    if (this.#isDisposed) {
      if (given === null) for (const track of media.getTracks()) track.stop();
      return;
    }
    // All at once: dispose() stops them even if it comes before the second one is used.
    if (given === null) for (const track of media.getTracks()) this.#ours.add(track);
    for (const track of [media.getAudioTracks()[0], media.getVideoTracks()[0]]) {
      if (track !== undefined) await this.#use(track, given === null);
    }
    navigator.mediaDevices?.addEventListener("devicechange", this.#onDeviceChange);
  }

  track(kind: TrackKind): MediaStreamTrack | null {
    return this.#current[kind];
  }

  setMuted(muted: Required<MutedConfig>): void {
    this.#muted = muted;
    for (const track of this.stream.getTracks()) track.enabled = !muted[kindOf(track)];
  }

  /** Switches to a track of the page; the page has to stop it. */
  async setTrack(track: MediaStreamTrack): Promise<void> {
    const kind = kindOf(track);
    const shared = kind === "video" ? this.#screen : null;
    this.#choices += 1;
    this.#chosen[kind] = this.#choices;
    await this.#use(track, false);
    this.#missing.delete(kind);
    if (shared !== null) this.#forgetScreen();
  }

  /** Switches to another camera or microphone; without an id the browser chooses, since the configured device may be
   *  gone. Has no effect if one that was chosen later opens earlier. */
  setDevice(kind: TrackKind, deviceId: string | null): Promise<void> {
    return this.#setDevice(kind, deviceId, () => true);
  }

  /** `isWanted` is asked once the device is open. */
  async #setDevice(kind: TrackKind, deviceId: string | null, isWanted: () => boolean): Promise<void> {
    this.#choices += 1;
    const choice = this.#choices;
    const { audioDeviceId, videoDeviceId, ...config } = this.#config.mediaStreamCfg;
    const { audio, video } = constraintsOf({
      ...config,
      audioVideoOnly: kind,
      ...(deviceId === null ? {} : { [`${kind}DeviceId`]: deviceId }),
    });
    const constraints = kind === "audio" ? { audio: audio ?? true } : { video: video ?? true };
    const media = await openDevices(constraints).catch((error: unknown) =>
      this.#openAfterClosing(kind, constraints, error),
    );
    const [track] = media.getTracks();
    if (track === undefined) throw new WebcasterError("device_missing");
    if (choice < this.#chosen[kind] || !isWanted()) {
      track.stop();
      return;
    }
    this.#chosen[kind] = choice;
    if (kind === "video" && this.#screen !== null && !this.#isDisposed) {
      // Replaces the track that waits behind the screen.
      this.#release(this.#behindScreen);
      this.#ours.add(track);
      this.#behindScreen = track;
    } else {
      await this.#use(track, true);
    }
    this.#missing.delete(kind);
  }

  /** Phones open only one camera at a time: the one being sent is closed first. */
  #openAfterClosing(kind: TrackKind, constraints: MediaStreamConstraints, error: unknown): Promise<MediaStream> {
    const former = this.#behindScreen !== null && kind === "video" ? this.#behindScreen : this.#current[kind];
    const isBusy = error instanceof WebcasterError && error.reason === "device_busy";
    if (!isBusy || former === null || !this.#ours.has(former)) throw error;
    former.stop();
    // If that did not help, the next device that is connected is tried.
    this.#missing.add(kind);
    return openDevices(constraints);
  }

  get isScreenShared(): boolean {
    return this.#screen !== null;
  }

  /** Switches to a screen. The camera keeps running, and is sent again when the sharing ends, whoever ends it. */
  async startScreenShare(options: DisplayMediaStreamOptions): Promise<void> {
    const media = await openScreen({ ...options, audio: false });
    const [track] = media.getVideoTracks();
    if (track === undefined) throw new WebcasterError("screen_denied");
    const camera = this.#screen === null ? this.#current.video : this.#behindScreen;
    const [former, formerBehind] = [this.#screen, this.#behindScreen];
    this.#behindScreen = camera;
    this.#screen = track;
    try {
      await this.#use(track, true);
    } catch (error) {
      this.#screen = former;
      this.#behindScreen = formerBehind;
      throw error;
    }
    this.#release(former);
  }

  /** Sends what was sent before: the camera, another one if it is gone, or no video. */
  async stopScreenShare(): Promise<void> {
    const [screen, camera] = [this.#screen, this.#behindScreen];
    if (screen === null) return;
    this.#screen = null;
    this.#behindScreen = null;
    const isOurs = camera !== null && this.#ours.has(camera);
    try {
      if (camera?.readyState === "live") await this.#use(camera, isOurs);
      else if (isOurs) await this.#replace("video");
      else await this.#sendNone(screen);
    } finally {
      // Whatever happened to the camera, the broadcaster has ended the sharing.
      screen.onended = null;
      if (this.#ours.delete(screen)) screen.stop();
    }
  }

  /** Stops the tracks that were opened here, and with `isWhole` the page's own, too. */
  dispose(isWhole: boolean): void {
    this.#isDisposed = true;
    navigator.mediaDevices?.removeEventListener("devicechange", this.#onDeviceChange);
    const tracks = [...this.#ours, ...(isWhole ? this.stream.getTracks() : [])];
    for (const track of this.stream.getTracks()) {
      track.onended = null;
      this.stream.removeTrack(track);
    }
    for (const track of tracks) track.stop();
    this.#ours.clear();
  }

  /** Sends and shows a track. One that was opened for this is stopped if that fails, or if dispose() comes first. */
  async #use(track: MediaStreamTrack, isOurs: boolean): Promise<void> {
    const kind = kindOf(track);
    const isNew = isOurs && !this.#ours.has(track);
    if (isNew) this.#ours.add(track);
    try {
      track.enabled = !this.#muted[kind];
      await this.#send(kind, track);
    } catch (error) {
      if (isNew) {
        this.#ours.delete(track);
        track.stop();
      }
      throw error;
    }
    // Muting and the track that this one replaces may have changed meanwhile.
    track.enabled = !this.#muted[kind];
    const former = this.#current[kind];
    this.#current[kind] = track;
    track.onended = () => void this.#onEnded(track).catch(() => {});
    if (former === track) return;
    if (former !== null) this.stream.removeTrack(former);
    this.stream.addTrack(track);
    if (former !== this.#behindScreen) this.#release(former);
  }

  /** Ends the sending of a track that nothing replaces. */
  async #sendNone(track: MediaStreamTrack): Promise<void> {
    const kind = kindOf(track);
    await this.#send(kind, null);
    if (this.#current[kind] === track) this.#current[kind] = null;
    this.stream.removeTrack(track);
  }

  /** Throws once this is disposed of, since the host may already send another input's tracks. */
  async #send(kind: TrackKind, track: MediaStreamTrack | null): Promise<void> {
    this.#requireUse();
    await this.#host.send(kind, track);
    this.#requireUse();
  }

  #requireUse(): void {
    if (this.#isDisposed) throw new WebcasterError("wrong_state", { detail: "dispose() was called" });
  }

  #release(track: MediaStreamTrack | null): void {
    if (track === null || track === this.#current[kindOf(track)]) return;
    track.onended = null;
    if (this.#ours.delete(track)) track.stop();
  }

  #forgetScreen(): void {
    const [screen, camera] = [this.#screen, this.#behindScreen];
    this.#screen = null;
    this.#behindScreen = null;
    this.#release(screen);
    this.#release(camera);
  }

  /** The browser ended a track: the sharing was stopped in the browser's bar, or a device is gone. */
  async #onEnded(track: MediaStreamTrack): Promise<void> {
    if (this.#isDisposed) return;
    if (track === this.#screen) return await this.#orReport(() => this.stopScreenShare());
    const kind = kindOf(track);
    if (track !== this.#current[kind]) return;
    const isOurs = this.#ours.has(track);
    this.#host.reportError(new WebcasterError("device_lost", { detail: track.label || kind }));
    if (isOurs) await this.#replace(kind).catch(() => {});
  }

  /** Replaces a device that is gone, now or when the next one is connected. */
  async #replace(kind: TrackKind): Promise<void> {
    this.#missing.add(kind);
    await this.#setDevice(kind, null, () => this.#missing.has(kind));
  }

  readonly #onDeviceChange = () => void this.#replaceMissing();

  /** Replaces a missing device by another of its kind; if there is none, by the next one connected. */
  async #replaceMissing(): Promise<void> {
    for (const kind of [...this.#missing]) await this.#replace(kind).catch(() => {});
  }

  async #orReport(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!this.#isDisposed) this.#host.reportError(asWebcasterError(error, "device_lost"));
    }
  }
}

function kindOf(track: MediaStreamTrack): TrackKind {
  return track.kind === "audio" ? "audio" : "video";
}
