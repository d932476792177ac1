// Captures as the media core makes them: the recording of a publish to a file.

/** What to capture, and where to. */
export interface CaptureOptions {
  /** A file that does not exist yet. */
  readonly path: string;
  /** A JSON object, for people. */
  readonly header: string;
  /** false: audio and video are overwritten by zeros of the same length. */
  readonly media: boolean;
  /** Limit of the file's size. */
  readonly bytesLimit: number;
  readonly timeLimitMs: number;
}

/** A running capture. */
export interface CaptureSource {
  /** `ended`: the reason; undefined until its file is closed. */
  status(): { readonly bytes: number; readonly frames: number; readonly ended?: string };
  /** Ends it; its file is closed soon after. */
  stop(): void;
}

/** The capture functions of the media core. */
export interface CaptureMedia {
  /** Captures a running publish from this moment on; null when it does not run here, or our offer (v5) is not answered
   *  yet. Throws when the file cannot be created. */
  capture(clientId: number, options: CaptureOptions): CaptureSource | null;
  /** Captures the publish that is allowed under this client id next, from its first byte on; null when the core has
   *  stopped. */
  captureNext(clientId: number, options: CaptureOptions): CaptureSource | null;
}

export function captureMedia(core: CaptureMedia): CaptureMedia {
  return {
    capture: (clientId, options) => core.capture(clientId, options),
    captureNext: (clientId, options) => core.captureNext(clientId, options),
  };
}
