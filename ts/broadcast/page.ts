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
import { createView } from "./view.ts";
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

export interface Page {
  isBroadcasting(): boolean;
  /** The page is being left: everything is released. */
  leave(): void;
  /** Reports that the link's token is invalid. */
  refuseLink(fault: string): void;
  /** Shows whose stream the link leads to, and its title. */
  showOwner(owner: Owner): void;
}

export function startPage({ page, serverUrl, ingestUrl, link, media, screenLock }: PageDeps): Page {
  let state: PageState = {
    stage: "off",
    isWaiting: false,
    link,
    title: null,
    organisation: null,
    logo: null,
    streamName: "",
    address: ingestUrl,
    choice: { source: "camera", cameraId: "", microphoneId: "", quality: STANDARD },
    devices: { cameras: [], microphones: [] },
    canShareScreen: media !== undefined && "getDisplayMedia" in media,
    has: { audio: false, video: false },
    muted: { audio: false, video: false },
    sendsAudio: false,
    sendsVideo: false,
    notice: media === undefined ? notices.INSECURE : link.kind === "broken" ? notices.BROKEN_LINK : null,
    hint: null,
    figures: null,
    liveSeconds: 0,
  };
  const view = createView(page, {
    primary,
    choose: (change) => void choose(change),
    type: (field, text) => set({ [field]: text }),
    toggle,
  });
  const capture: Capture | null = media === undefined ? null : createCapture(media, lost);
  let session: Session | null = null;
  /** The end of the latest broadcast, or of an attempt that was cancelled. */
  let ended: Promise<void> = Promise.resolve();
  /** Whether the camera was on before the screen was shared, and is opened again after it. */
  let hadCamera = false;
  let watch: Watch = NOTHING_SEEN;
  let metered: MediaStreamTrack | null = null;
  let stopMeter = () => {};
  /** Changes are made one after another: a camera that is still opening cannot be replaced, and one that is missing
   *  when the broadcast starts cannot be added to it. */
  let changes: Promise<void> = Promise.resolve();
  media?.addEventListener("devicechange", () => void afterChanges(reopenLost));
  set({});

  function set(change: Partial<PageState>): void {
    state = { ...state, ...change };
    view.show(state);
  }

  function primary(): void {
    if (state.stage === "off" || state.stage === "ended") void open();
    else if (state.stage === "ready") goLiveInTurn();
    else if (state.stage === "connecting") cancel();
    else if (isBroadcasting(state)) end(null);
  }

  async function open(): Promise<void> {
    if (capture === null) return;
    hadCamera = false;
    set({ stage: "opening", notice: null, hint: null, liveSeconds: 0 });
    try {
      await capture.open(state.choice);
    } catch (error) {
      const isPicker = error instanceof NothingShared;
      set({ stage: "off", notice: isPicker ? notices.NOTHING_SHARED : notices.deviceNotice(nameOf(error)) });
      return;
    }
    showMedia();
    const isSilent = !state.has.audio && state.choice.microphoneId !== null;
    set({ stage: "ready", notice: isSilent ? notices.NO_MICROPHONE : null });
    await listDevices();
  }

  /** Updates preview, meter and buttons for the current tracks. */
  function showMedia(): void {
    if (capture === null) return;
    const { stream } = capture;
    const [audio = null] = stream.getAudioTracks();
    for (const track of stream.getTracks()) track.enabled = !state.muted[track.kind as "audio" | "video"];
    view.preview(stream);
    if (audio !== metered) {
      stopMeter();
      stopMeter = audio === null ? () => {} : startMeter(audio, view.level);
      metered = audio;
    }
    set({ has: { audio: audio !== null, video: stream.getVideoTracks().length > 0 } });
  }

  /** Fills the lists, with the devices in use selected. */
  async function listDevices(): Promise<void> {
    if (capture === null) return;
    const devices = await capture.devices();
    const inUse = (kind: "audio" | "video") =>
      capture.stream
        .getTracks()
        .find((track) => track.kind === kind)
        ?.getSettings().deviceId;
    const { choice } = state;
    const cameraId = choice.source === "camera" ? (inUse("video") ?? choice.cameraId) : choice.cameraId;
    const microphoneId = choice.microphoneId === null ? null : (inUse("audio") ?? choice.microphoneId);
    set({ devices, choice: { ...choice, cameraId, microphoneId } });
  }

  function choose(change: Partial<Choice>): Promise<void> {
    return afterChanges(() => apply(change));
  }

  function afterChanges(act: () => Promise<void> | void): Promise<void> {
    const done = changes.then(act);
    changes = done.catch(() => {}); // one that fails does not keep the next from being made
    return done;
  }

  async function apply(change: Partial<Choice>): Promise<void> {
    const before = state.choice;
    const choice = { ...before, ...change };
    set({ choice });
    if (capture === null || !isCapturing(state)) return;
    const hadVideo = state.has.video;
    set({ notice: null });
    try {
      if (change.quality !== undefined) {
        if (choice.source === "camera") await capture.resize(choice.quality);
        await session?.changeQuality(choice.quality);
      } else if (change.microphoneId !== undefined) {
        const track = await capture.replaceAudio(choice);
        if (track !== null) await session?.replaceTrack(track);
      } else {
        const track = await capture.replaceVideo(choice);
        await session?.replaceTrack(track);
        hadCamera = before.source === "camera" && hadVideo;
      }
      showMedia();
      await listDevices();
    } catch (error) {
      if (!isCapturing(state)) return; // everything was released meanwhile
      // A person who closes the screen picker keeps the camera and needs no notice.
      set({ choice: before, notice: error instanceof NothingShared ? null : notices.deviceNotice(nameOf(error)) });
      showMedia();
      if (hadVideo && !state.has.video && before.source === "camera") await reopenCamera(before);
    }
  }

  /** Sends the former camera again: it was closed for one that could not be opened. */
  async function reopenCamera(former: Choice): Promise<void> {
    if (capture === null) return;
    try {
      await session?.replaceTrack(await capture.replaceVideo(former));
    } catch {
      // The notice is already shown.
    }
    showMedia();
  }

  /** Fills the lists, and opens a camera or microphone that was lost and is connected again: its list shows it as
   *  chosen already, so that the person could not choose it again. */
  async function reopenLost(): Promise<void> {
    await listDevices();
    if (!isCapturing(state)) return;
    const { choice, devices, has, sendsAudio, sendsVideo } = state;
    const isSent = isBroadcasting(state) ? { audio: sendsAudio, video: sendsVideo } : { audio: true, video: true };
    const { source, cameraId, microphoneId } = choice;
    if (source === "camera" && !has.video && isSent.video && isListed(devices.cameras, cameraId)) {
      await apply({ cameraId });
    }
    if (!has.audio && isSent.audio && isListed(devices.microphones, microphoneId)) await apply({ microphoneId });
  }

  function lost(kind: "audio" | "video"): void {
    showMedia();
    if (kind === "audio") set({ notice: notices.MICROPHONE_LOST });
    else if (state.choice.source === "camera") set({ notice: notices.CAMERA_LOST });
    else if (hadCamera) void choose({ source: "camera" });
    else set({ notice: notices.SCREEN_ENDED });
  }

  function toggle(kind: "audio" | "video"): void {
    set({ muted: { ...state.muted, [kind]: !state.muted[kind] } });
    session?.setMuted(state.muted);
    showMedia();
  }

  function goLiveInTurn(): void {
    set({ isWaiting: true });
    void afterChanges(() => {
      set({ isWaiting: false });
      goLive();
    });
  }

  function goLive(): void {
    // Left while a change was being made.
    if (capture === null || state.stage !== "ready") return;
    const target = targetOf(state);
    if ("tone" in target) {
      set({ notice: target });
      if (target.field !== undefined) view.enter(target.field);
      return;
    }
    const { audio: sendsAudio, video: sendsVideo } = state.has;
    if (!sendsAudio && !sendsVideo) {
      set({ notice: notices.NOTHING_TO_SEND });
      return;
    }
    watch = NOTHING_SEEN;
    set({ stage: "connecting", sendsAudio, sendsVideo, notice: null, hint: null, figures: null, liveSeconds: 0 });
    screenLock.hold();
    const { choice, muted } = state;
    const { stream } = capture;
    const options = { serverUrl, target, stream, quality: choice.quality, muted, former: ended };
    session = startSession(options, {
      live() {
        // Any change of the connection is reported, and must not hide what was shown since.
        if (state.stage !== "live") set({ stage: "live", notice: sendsVideo ? null : notices.NO_VIDEO });
      },
      reconnecting: () => set({ stage: "reconnecting", figures: null, hint: null }),
      metrics(metrics) {
        watch = watchOn(watch, metrics, state.choice.quality.videoBitrate);
        set({ figures: figuresOf(metrics), hint: watch.hint, liveSeconds: Math.floor(metrics.liveSec) });
      },
      ended: (failure) => end(notices.failureNotice(failure)),
    });
  }

  function cancel(): void {
    endSession();
    screenLock.release();
    set({ stage: "ready" });
  }

  /** The end of a broadcast, or of an attempt: if it was never live, the preview stays and the person can try again at
   *  once. */
  function end(notice: notices.Notice | null): void {
    const wasLive = state.stage !== "connecting";
    endSession();
    screenLock.release();
    if (wasLive) release();
    set({ stage: wasLive ? "ended" : "ready", notice, hint: null, figures: null });
    if (notice?.field !== undefined) view.enter(notice.field);
  }

  function endSession(): void {
    ended = session?.end() ?? ended;
    session = null;
  }

  function release(): void {
    capture?.release();
    showMedia();
    set({ muted: { audio: false, video: false } });
  }

  return {
    isBroadcasting: () => isBroadcasting(state),
    leave() {
      if (isBroadcasting(state)) end(null);
      release();
      set({ stage: "off" });
    },
    refuseLink: (fault) => set({ notice: notices.tokenNotice(fault) }),
    // A node of an older version knows the title alone.
    showOwner: ({ title, organisation = null, logo = null }) => set({ title, organisation, logo }),
  };
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
