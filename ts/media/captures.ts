// Captures as the media core makes and plays them: a publish to a file, and a file played again.

/** What to capture, and where to. */
export interface CaptureOptions {
  /** A file that does not exist yet. */
  readonly path: string;
  /** A JSON object, for people. */
  readonly header: string;
  /** false: audio and video are overwritten by zeros of the same length. */
  readonly media: boolean;
  /** Of the file. */
  readonly bytesLimit: number;
  readonly timeLimitMs: number;
}

/** One capture. */
export interface CaptureSource {
  /** `ended`: why; undefined until its file is closed. */
  status(): { readonly bytes: number; readonly frames: number; readonly ended?: string };
  /** Ends it; its file is closed soon. */
  stop(): void;
}

/** What may be asked of the media core about captures. */
export interface CaptureMedia {
  /** Captures a publish that runs, from now on; null when it does not run here, or our offer (v5) is not answered yet.
   *  Throws when the file cannot be made. */
  capture(clientId: number, options: CaptureOptions): CaptureSource | null;
  /** Captures the publish that is allowed under this client id right after, from its first byte on; null when the core has
   *  stopped. */
  captureNext(clientId: number, options: CaptureOptions): CaptureSource | null;
}

export function captureMedia(core: CaptureMedia): CaptureMedia {
  return {
    capture: (clientId, options) => core.capture(clientId, options),
    captureNext: (clientId, options) => core.captureNext(clientId, options),
  };
}
