// The broadcast page: reacts to the broadcaster's actions and to events of the broadcast. Every browser object is
// passed in from main.ts.
import { type Capture, createCapture, NothingShared } from "./capture.ts";
import { figuresOf } from "./figures.ts";
import { NOTHING_SEEN, type Watch, watchOn } from "./hints.ts";
import type { Link } from "./link.ts";
import { startMeter } from "./meter.ts";
import * as notices from "./notices.ts";
import { STANDARD } from "./qualities.ts";
import { type Session, startSession, type Target } from "./session.ts";
import { type Choice, type Device, isBroadcasting, isCapturing, type PageState } from "./state.ts";
import { View } from "./view.ts";
import type { ScreenLock } from "./wake-lock.ts";

export interface PageDeps {
  readonly page: Document;
  /** Origin of the service: `https://host`. */
  readonly serverUrl: string;
  /** The service's own RTMP address, for stream names entered by hand. */
  readonly ingestUrl: string;
  readonly link: Link;
  /** Undefined when the page is not secure. */
  readonly media: MediaDevices | undefined;
  readonly screenLock: ScreenLock;
}

/** Whose stream the link leads to, as the service says. */
export interface Owner {
  readonly title: string | null;
  readonly organisation?: string | null;
  readonly logo?: string | null;
}

/** The state at the start, as far as it does not depend on the page's dependencies. */
const OFF = {
  stage: "off",
  isWaiting: false,
  title: null,
  organisation: null,
  logo: null,
  streamName: "",
  choice: { source: "camera", cameraId: "", microphoneId: "", quality: STANDARD },
  devices: { cameras: [], microphones: [] },
  has: { audio: false, video: false },
  muted: { audio: false, video: false },
  sendsAudio: false,
  sendsVideo: false,
  hint: null,
  figures: null,
  liveSeconds: 0,
} as const;

export class BroadcastPage {
  readonly #deps: PageDeps;
  #state: PageState;
  readonly #view: View;
  readonly #capture: Capture | null;
  #session: Session | null = null;
  /** The end of the latest broadcast, or of an attempt that was cancelled. */
  #ended: Promise<void> = Promise.resolve();
  /** Whether the camera was on before the screen was shared, and is opened again after it. */
  #hadCamera = false;
  #watch: Watch = NOTHING_SEEN;
  #metered: MediaStreamTrack | null = null;
  #stopMeter = () => {};
  /** Changes are made one after another: a camera that is still opening cannot be replaced, and one that is missing
   *  when the broadcast starts cannot be added to it. */
  #changes: Promise<void> = Promise.resolve();

  constructor(deps: PageDeps) {
    const { page, media, link, ingestUrl } = deps;
    this.#deps = deps;
    this.#state = {
      ...OFF,
      link,
      address: ingestUrl,
      canShareScreen: media !== undefined && "getDisplayMedia" in media,
      notice: media === undefined ? notices.INSECURE : link.kind === "broken" ? notices.BROKEN_LINK : null,
    };
    this.#view = new View(page, {
      primary: () => this.#primary(),
      choose: (change) => void this.#choose(change),
      type: (field, text) => this.#set({ [field]: text }),
      toggle: (kind) => this.#toggle(kind),
    });
    this.#capture = media === undefined ? null : createCapture(media, (kind) => this.#lost(kind));
    media?.addEventListener("devicechange", () => void this.#afterChanges(() => this.#reopenLost()));
    this.#set({});
  }

  isBroadcasting(): boolean {
    return isBroadcasting(this.#state);
  }

  /** The page is being left: everything is released. */
  leave(): void {
    if (this.isBroadcasting()) this.#end(null);
    this.#release();
    this.#set({ stage: "off" });
  }

  /** Reports that the link's token is invalid. */
  refuseLink(fault: string): void {
    this.#set({ notice: notices.tokenNotice(fault) });
  }

  /** Shows whose stream the link leads to, and its title. A node of an older version knows the title alone. */
  showOwner({ title, organisation = null, logo = null }: Owner): void {
    this.#set({ title, organisation, logo });
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#view.show(this.#state);
  }

  #primary(): void {
    if (this.#state.stage === "off" || this.#state.stage === "ended") void this.#open();
    else if (this.#state.stage === "ready") this.#goLiveInTurn();
    else if (this.#state.stage === "connecting") this.#cancel();
    else if (isBroadcasting(this.#state)) this.#end(null);
  }

  async #open(): Promise<void> {
    if (this.#capture === null) return;
    this.#hadCamera = false;
    this.#set({ stage: "opening", notice: null, hint: null, liveSeconds: 0 });
    try {
      await this.#capture.open(this.#state.choice);
    } catch (error) {
      const isPicker = error instanceof NothingShared;
      this.#set({ stage: "off", notice: isPicker ? notices.NOTHING_SHARED : notices.deviceNotice(nameOf(error)) });
      return;
    }
    this.#showMedia();
    const isSilent = !this.#state.has.audio && this.#state.choice.microphoneId !== null;
    this.#set({ stage: "ready", notice: isSilent ? notices.NO_MICROPHONE : null });
    await this.#listDevices();
  }

  /** Updates preview, meter and buttons for the current tracks. */
  #showMedia(): void {
    if (this.#capture === null) return;
    const { stream } = this.#capture;
    const [audio = null] = stream.getAudioTracks();
    for (const track of stream.getTracks()) track.enabled = !this.#state.muted[track.kind as "audio" | "video"];
    this.#view.preview(stream);
    if (audio !== this.#metered) {
      this.#stopMeter();
      this.#stopMeter = audio === null ? () => {} : startMeter(audio, (level) => this.#view.level(level));
      this.#metered = audio;
    }
    this.#set({ has: { audio: audio !== null, video: stream.getVideoTracks().length > 0 } });
  }

  /** Fills the lists, with the devices in use selected. */
  async #listDevices(): Promise<void> {
    if (this.#capture === null) return;
    const { stream } = this.#capture;
    const devices = await this.#capture.devices();
    const inUse = (kind: "audio" | "video") =>
      stream
        .getTracks()
        .find((track) => track.kind === kind)
        ?.getSettings().deviceId;
    const { choice } = this.#state;
    const cameraId = choice.source === "camera" ? (inUse("video") ?? choice.cameraId) : choice.cameraId;
    const microphoneId = choice.microphoneId === null ? null : (inUse("audio") ?? choice.microphoneId);
    this.#set({ devices, choice: { ...choice, cameraId, microphoneId } });
  }

  #choose(change: Partial<Choice>): Promise<void> {
    return this.#afterChanges(() => this.#apply(change));
  }

  #afterChanges(act: () => Promise<void> | void): Promise<void> {
    const done = this.#changes.then(act);
    this.#changes = done.catch(() => {}); // one that fails does not keep the next from being made
    return done;
  }

  async #apply(change: Partial<Choice>): Promise<void> {
    const before = this.#state.choice;
    const choice = { ...before, ...change };
    this.#set({ choice });
    if (this.#capture === null || !isCapturing(this.#state)) return;
    const hadVideo = this.#state.has.video;
    this.#set({ notice: null });
    try {
      if (change.quality !== undefined) {
        if (choice.source === "camera") await this.#capture.resize(choice.quality);
        await this.#session?.changeQuality(choice.quality);
      } else if (change.microphoneId !== undefined) {
        const track = await this.#capture.replaceAudio(choice);
        if (track !== null) await this.#session?.replaceTrack(track);
      } else {
        const track = await this.#capture.replaceVideo(choice);
        await this.#session?.replaceTrack(track);
        this.#hadCamera = before.source === "camera" && hadVideo;
      }
      this.#showMedia();
      await this.#listDevices();
    } catch (error) {
      if (!isCapturing(this.#state)) return; // everything was released meanwhile
      // A person who closes the screen picker keeps the camera and needs no notice.
      this.#set({
        choice: before,
        notice: error instanceof NothingShared ? null : notices.deviceNotice(nameOf(error)),
      });
      this.#showMedia();
      if (hadVideo && !this.#state.has.video && before.source === "camera") await this.#reopenCamera(before);
    }
  }

  /** Sends the former camera again: it was closed for one that could not be opened. */
  async #reopenCamera(former: Choice): Promise<void> {
    if (this.#capture === null) return;
    try {
      await this.#session?.replaceTrack(await this.#capture.replaceVideo(former));
    } catch {
      // The notice is already shown.
    }
    this.#showMedia();
  }

  /** Fills the lists, and opens a camera or microphone that was lost and is connected again: its list shows it as
   *  chosen already, so that the person could not choose it again. */
  async #reopenLost(): Promise<void> {
    await this.#listDevices();
    if (!isCapturing(this.#state)) return;
    const { choice, devices, has, sendsAudio, sendsVideo } = this.#state;
    const isSent = isBroadcasting(this.#state)
      ? { audio: sendsAudio, video: sendsVideo }
      : { audio: true, video: true };
    const { source, cameraId, microphoneId } = choice;
    if (source === "camera" && !has.video && isSent.video && isListed(devices.cameras, cameraId)) {
      await this.#apply({ cameraId });
    }
    if (!has.audio && isSent.audio && isListed(devices.microphones, microphoneId)) await this.#apply({ microphoneId });
  }

  #lost(kind: "audio" | "video"): void {
    this.#showMedia();
    if (kind === "audio") this.#set({ notice: notices.MICROPHONE_LOST });
    else if (this.#state.choice.source === "camera") this.#set({ notice: notices.CAMERA_LOST });
    else if (this.#hadCamera) void this.#choose({ source: "camera" });
    else this.#set({ notice: notices.SCREEN_ENDED });
  }

  #toggle(kind: "audio" | "video"): void {
    this.#set({ muted: { ...this.#state.muted, [kind]: !this.#state.muted[kind] } });
    this.#session?.setMuted(this.#state.muted);
    this.#showMedia();
  }

  #goLiveInTurn(): void {
    this.#set({ isWaiting: true });
    void this.#afterChanges(() => {
      this.#set({ isWaiting: false });
      this.#goLive();
    });
  }

  #goLive(): void {
    // Left while a change was being made.
    if (this.#capture === null || this.#state.stage !== "ready") return;
    const target = targetOf(this.#state);
    if ("tone" in target) {
      this.#set({ notice: target });
      if (target.field !== undefined) this.#view.enter(target.field);
      return;
    }
    const { audio: sendsAudio, video: sendsVideo } = this.#state.has;
    if (!sendsAudio && !sendsVideo) {
      this.#set({ notice: notices.NOTHING_TO_SEND });
      return;
    }
    this.#watch = NOTHING_SEEN;
    this.#set({ stage: "connecting", sendsAudio, sendsVideo, notice: null, hint: null, figures: null, liveSeconds: 0 });
    this.#deps.screenLock.hold();
    const { choice, muted } = this.#state;
    const { stream } = this.#capture;
    const options = {
      serverUrl: this.#deps.serverUrl,
      target,
      stream,
      quality: choice.quality,
      muted,
      former: this.#ended,
    };
    this.#session = startSession(options, {
      live: () => {
        // Any change of the connection is reported, and must not hide what was shown since.
        if (this.#state.stage !== "live") this.#set({ stage: "live", notice: sendsVideo ? null : notices.NO_VIDEO });
      },
      reconnecting: () => this.#set({ stage: "reconnecting", figures: null, hint: null }),
      metrics: (metrics) => {
        this.#watch = watchOn(this.#watch, metrics, this.#state.choice.quality.videoBitrate);
        this.#set({ figures: figuresOf(metrics), hint: this.#watch.hint, liveSeconds: Math.floor(metrics.liveSec) });
      },
      ended: (failure) => this.#end(notices.failureNotice(failure)),
    });
  }

  #cancel(): void {
    this.#endSession();
    this.#deps.screenLock.release();
    this.#set({ stage: "ready" });
  }

  /** The end of a broadcast, or of an attempt: if it was never live, the preview stays and the person can try again at
   *  once. */
  #end(notice: notices.Notice | null): void {
    const wasLive = this.#state.stage !== "connecting";
    this.#endSession();
    this.#deps.screenLock.release();
    if (wasLive) this.#release();
    this.#set({ stage: wasLive ? "ended" : "ready", notice, hint: null, figures: null });
    if (notice?.field !== undefined) this.#view.enter(notice.field);
  }

  #endSession(): void {
    this.#ended = this.#session?.end() ?? this.#ended;
    this.#session = null;
  }

  #release(): void {
    this.#capture?.release();
    this.#showMedia();
    this.#set({ muted: { audio: false, video: false } });
  }
}

/** The target, or a notice about what is missing. */
function targetOf({ link, streamName, address }: PageState): Target | notices.Notice {
  if (link.kind === "token") return { token: link.token };
  if (streamName.trim() === "") return notices.NO_STREAM_NAME;
  if (!/^rtmps?:\/\/[^/\s]+\/live\/?$/i.test(address.trim())) return notices.NO_ADDRESS;
  return { streamName: streamName.trim(), address: address.trim() };
}

function isListed(devices: readonly Device[], chosenId: string | null): boolean {
  return devices.some(({ id }) => id === chosenId);
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}
