// Captures as the media core makes them: the recording of a publish to a file, and its replay.
import type { MediaCapture, MediaCore } from "#native";

export type { CaptureOptions, ReplayOutcome } from "#native";

/** A running capture. */
export type CaptureSource = Pick<MediaCapture, keyof MediaCapture>;

/** The capture functions of the media core. */
export interface CaptureMedia {
  capture(...call: Parameters<MediaCore["capture"]>): CaptureSource | null;
  captureNext(...call: Parameters<MediaCore["captureNext"]>): CaptureSource;
}
