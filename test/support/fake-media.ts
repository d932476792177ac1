// Camera, microphone and screen of a browser, in memory: tests of the browser client's media run in Node with them. They
// record what was opened, and stay open until they are stopped.
import { vi } from "vitest";

type Kind = "audio" | "video";
/** `getUserMedia`'s argument, as far as tests read it. */
export interface FakeConstraints {
  readonly audio?: unknown;
  readonly video?: unknown;
}

export class FakeTrack extends EventTarget {
  readonly kind: Kind;
  readonly label: string;
  enabled = true;
  readyState: "live" | "ended" = "live";
  onended: (() => void) | null = null;

  constructor(kind: Kind, label: string) {
    super();
    this.kind = kind;
    this.label = label;
  }

  stop(): void {
    this.readyState = "ended";
  }

  /** Ends it as the browser does: the device is unplugged, or the sharing is stopped in the browser's bar. */
  lose(): void {
    this.stop();
    this.onended?.();
    this.dispatchEvent(new Event("ended"));
  }
}

class FakeStream {
  readonly #tracks: Set<FakeTrack>;

  constructor(tracks: readonly FakeTrack[] = []) {
    this.#tracks = new Set(tracks);
  }

  getTracks = () => [...this.#tracks];
  getAudioTracks = () => this.getTracks().filter(({ kind }) => kind === "audio");
  getVideoTracks = () => this.getTracks().filter(({ kind }) => kind === "video");
  addTrack = (track: FakeTrack) => void this.#tracks.add(track);
  removeTrack = (track: FakeTrack) => void this.#tracks.delete(track);
}

/** `navigator.mediaDevices`. Tests replace `beforeOpening` to refuse a request, or to delay it. */
export class FakeDevices extends EventTarget {
  /** Every track that was ever opened, in this order. */
  readonly opened: FakeTrack[] = [];
  /** What was requested of camera and microphone. */
  readonly requests: FakeConstraints[] = [];
  beforeOpening: (constraints: FakeConstraints | "screen") => Promise<void> | void = () => {};

  async enumerateDevices(): Promise<{ readonly kind: string; readonly deviceId: string; readonly label: string }[]> {
    return ["audioinput", "videoinput"].map((kind) => ({ kind, deviceId: kind, label: kind }));
  }

  async getUserMedia(constraints: FakeConstraints): Promise<FakeStream> {
    this.requests.push(constraints);
    await this.beforeOpening(constraints);
    const kinds = (["audio", "video"] as const).filter((kind) => Boolean(constraints[kind]));
    return this.#stream(kinds, "device");
  }

  async getDisplayMedia(): Promise<FakeStream> {
    await this.beforeOpening("screen");
    return this.#stream(["video"], "screen");
  }

  #stream(kinds: readonly Kind[], label: string): FakeStream {
    const tracks = kinds.map((kind) => new FakeTrack(kind, label));
    this.opened.push(...tracks);
    return new FakeStream(tracks);
  }
}

/** Sets the globals of a browser; `vi.unstubAllGlobals()` removes them. */
export function stubMedia(): FakeDevices {
  const mediaDevices = new FakeDevices();
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("MediaStream", FakeStream);
  vi.stubGlobal("navigator", { mediaDevices });
  return mediaDevices;
}
