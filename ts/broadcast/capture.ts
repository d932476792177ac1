// Camera, microphone and screen: opens them on request, replaces them while they run, and stops all of them at the end.
import type { Quality } from "./qualities.ts";
import type { Choice, Device, Devices } from "./state.ts";

export interface Capture {
  /** The current tracks, in one stream object that stays the same, since the preview shows it. */
  readonly stream: MediaStream;
  /** Opens video, and audio where there is a microphone. Rejects with the browser's `DOMException`, or with
   *  NothingShared, with nothing left open. */
  open(choice: Choice): Promise<void>;
  /** Replaces the current video by another. If the person does not share a screen after all, the current video is
   *  kept. */
  replaceVideo(choice: Choice): Promise<MediaStreamTrack>;
  /** The same for the microphone; null when none is chosen. */
  replaceAudio(choice: Choice): Promise<MediaStreamTrack | null>;
  /** Requests another size and frame rate from the camera, which picks the nearest it supports. A screen keeps its
   *  own. */
  resize(quality: Quality): Promise<void>;
  /** The available devices. Browsers reveal labels and ids only after the first permission. */
  devices(): Promise<Devices>;
  /** Stops every track. */
  release(): void;
}

/** The person closed the browser's screen picker without a choice, or may not share the screen. */
export class NothingShared extends Error {}

/** `onLost` is called when a track ended unexpectedly: unplugged, or no longer shared by the browser's own button. */
export function createCapture(media: MediaDevices, onLost: (kind: "audio" | "video") => void): Capture {
  const stream = new MediaStream();
  /** Counts releases: whatever is opened across one is stopped immediately. */
  let released = 0;

  function put(track: MediaStreamTrack): void {
    drop(track.kind);
    stream.addTrack(track);
    track.addEventListener("ended", () => {
      if (!stream.getTracks().includes(track)) return;
      stream.removeTrack(track);
      onLost(track.kind as "audio" | "video");
    });
  }

  function drop(kind: string): void {
    for (const track of stream.getTracks().filter((one) => one.kind === kind)) {
      stream.removeTrack(track);
      track.stop();
    }
  }

  /** Adds the tracks of `opening` to the stream, unless everything was released meanwhile. */
  async function keep(opening: Promise<MediaStream>): Promise<void> {
    const before = released;
    for (const track of (await opening).getTracks()) {
      if (released === before) put(track);
      else track.stop();
    }
    if (released !== before) throw new DOMException("released meanwhile", "AbortError");
  }

  async function screenOf({ quality }: Choice): Promise<MediaStream> {
    try {
      return await media.getDisplayMedia({ video: { frameRate: { ideal: quality.frameRate } }, audio: false });
    } catch (error) {
      // A blocked microphone has the same name.
      if (error instanceof Error && error.name === "NotAllowedError") throw new NothingShared(error.message);
      throw error;
    }
  }

  const cameraOf = ({ cameraId, quality }: Choice): MediaTrackConstraints => ({
    ...sizeOf(quality),
    ...(cameraId === "" ? {} : { deviceId: { exact: cameraId } }),
  });

  async function microphoneOf({ microphoneId }: Choice): Promise<MediaTrackConstraints | false> {
    if (microphoneId === null) return false;
    if (microphoneId !== "") return { deviceId: { exact: microphoneId } };
    // A computer with a camera but no microphone can still broadcast.
    return (await media.enumerateDevices()).some(({ kind }) => kind === "audioinput") ? {} : false;
  }

  return {
    stream,
    async open(choice) {
      try {
        if (choice.source === "camera") {
          const audio = await microphoneOf(choice);
          await keep(media.getUserMedia({ video: cameraOf(choice), audio }));
          return;
        }
        await keep(screenOf(choice)); // first: browsers require a recent click
        const audio = await microphoneOf(choice);
        if (audio !== false) await keep(media.getUserMedia({ audio }));
      } catch (error) {
        this.release();
        throw error;
      }
    },
    async replaceVideo(choice) {
      if (choice.source === "screen") await keep(screenOf(choice));
      else {
        drop("video"); // many phones open only one camera at a time
        await keep(media.getUserMedia({ video: cameraOf(choice) }));
      }
      return stream.getVideoTracks()[0] as MediaStreamTrack;
    },
    async replaceAudio(choice) {
      const audio = await microphoneOf(choice);
      if (audio === false) drop("audio");
      else await keep(media.getUserMedia({ audio }));
      return stream.getAudioTracks()[0] ?? null;
    },
    async resize(quality) {
      await stream.getVideoTracks()[0]?.applyConstraints(sizeOf(quality));
    },
    async devices() {
      const all = await media.enumerateDevices();
      const of = (wanted: MediaDeviceKind): Device[] =>
        all
          .filter(({ kind, deviceId }) => kind === wanted && deviceId !== "")
          .map(({ deviceId: id, label }) => ({ id, label }));
      return { cameras: of("videoinput"), microphones: of("audioinput") };
    },
    release() {
      released += 1;
      for (const { kind } of stream.getTracks()) drop(kind);
    },
  };
}

const sizeOf = ({ width, height, frameRate }: Quality) => ({
  width: { ideal: width },
  height: { ideal: height },
  frameRate: { ideal: frameRate },
});
