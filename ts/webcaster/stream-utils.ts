// Small functions about a MediaStream, under the name used by deployed clients.
import { openDevices } from "./capture.ts";

export const StreamUtils = {
  /** Camera and microphone; throws a WebcasterError. */
  createStream(constraints: MediaStreamConstraints = { audio: true, video: true }): Promise<MediaStream> {
    return openDevices(constraints);
  },

  /** Stops every track. */
  disposeStream(stream: MediaStream): void {
    for (const track of stream.getTracks()) track.stop();
  },

  hasAudio(stream: MediaStream): boolean {
    return stream.getAudioTracks().length > 0;
  },

  hasVideo(stream: MediaStream): boolean {
    return stream.getVideoTracks().length > 0;
  },

  getAudioTrackSettings(stream: MediaStream): MediaTrackSettings | null {
    return stream.getAudioTracks()[0]?.getSettings() ?? null;
  },

  getVideoTrackSettings(stream: MediaStream): MediaTrackSettings | null {
    return stream.getVideoTracks()[0]?.getSettings() ?? null;
  },

  /** Constraints that would produce a stream like this one. */
  getSyntheticMediaStreamConstraints(stream: MediaStream): MediaStreamConstraints {
    return {
      audio: stream.getAudioTracks()[0]?.getConstraints() ?? false,
      video: stream.getVideoTracks()[0]?.getConstraints() ?? false,
    };
  },

  setAudioTracksTo(stream: MediaStream, isEnabled: boolean): void {
    for (const track of stream.getAudioTracks()) track.enabled = isEnabled;
  },

  setVideoTracksTo(stream: MediaStream, isEnabled: boolean): void {
    for (const track of stream.getVideoTracks()) track.enabled = isEnabled;
  },

  /** Whether any audio track is enabled; null without audio. */
  audioEnabled(stream: MediaStream): boolean | null {
    return stream.getAudioTracks().length === 0 ? null : stream.getAudioTracks().some(({ enabled }) => enabled);
  },

  /** Whether any video track is enabled; null without video. */
  videoEnabled(stream: MediaStream): boolean | null {
    return stream.getVideoTracks().length === 0 ? null : stream.getVideoTracks().some(({ enabled }) => enabled);
  },
};
