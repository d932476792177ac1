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
  openPreview(clientId: number, wake: () => void): PreviewSource | null;
}
