// A preview as the media core hands it out: FLV in buffers that are passed on as they are.

/** One preview of one running publish. */
export interface PreviewSource {
  /** The next bytes, or why there will be no more; neither when nothing is there yet, and then the preview's `wake` is
   *  called once when there is. */
  read(): { readonly data?: Uint8Array<ArrayBuffer>; readonly ended?: string };
  /** Nothing more is wanted of it. */
  close(): void;
}

/** What may be asked of the media core about previews. */
export interface PreviewMedia {
  /** A running publish, or the pull of one, as FLV, from its cached keyframe on, with time 0 there; null when it does not run. A reader that
   *  does not take what waits loses frames up to a keyframe, and after 30 s of that the preview ends. Whoever stops
   *  reading calls `close`. */
  openPreview(clientId: number, wake: () => void): PreviewSource | null;
}
