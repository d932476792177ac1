// A preview from the media core: FLV in buffers that are passed on unchanged.

/** One preview of one running publish. */
export interface PreviewSource {
  /** The next bytes, or the reason for the end; neither when nothing is available yet, and then the preview's `wake` is
   *  called once when there is. */
  read(): { readonly data?: Uint8Array<ArrayBuffer>; readonly ended?: string };
  /** Stops the preview. */
  close(): void;
}

/** The preview functions of the media core. */
export interface PreviewMedia {
  /** A running publish, or the pull of one, as FLV, starting at its cached keyframe with time 0; null when it does not
   *  run. A reader that is too slow loses frames up to the next keyframe, and after 30 s of that the preview ends. A
   *  reader that stops must call `close`. */
  openPreview(clientId: number, wake: () => void): PreviewSource | null;
}
