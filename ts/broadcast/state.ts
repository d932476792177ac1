// What the page knows at one moment. Everything that is seen follows from it (words.ts, view.ts); page.ts changes it.
import type { Figures } from "./figures.ts";
import type { Link } from "./link.ts";
import type { Notice } from "./notices.ts";
import type { Quality } from "./qualities.ts";

/** What the video is taken from. */
export type Source = "camera" | "screen";

/** What a broadcaster chose. An empty id is the browser's own choice. */
export interface Choice {
  readonly source: Source;
  readonly cameraId: string;
  /** Null for no microphone at all. */
  readonly microphoneId: string | null;
  readonly quality: Quality;
}

/** A device as a list shows it. */
export interface Device {
  readonly id: string;
  readonly label: string;
}

export interface Devices {
  readonly cameras: readonly Device[];
  readonly microphones: readonly Device[];
}

/** Where a broadcast stands:
 *  off → opening → ready → connecting → live ⇄ reconnecting → ended → opening → …
 *  A refusal leads from connecting back to ready, every other end to ended. */
export type Stage = "off" | "opening" | "ready" | "connecting" | "live" | "reconnecting" | "ended";

export interface PageState {
  readonly stage: Stage;
  readonly link: Link;
  /** What was typed; of no interest when there is a link. */
  readonly streamName: string;
  readonly address: string;
  readonly choice: Choice;
  readonly devices: Devices;
  /** Whether the browser can share a screen: phones cannot. */
  readonly canShareScreen: boolean;
  /** Whether there is such a track now. */
  readonly has: { readonly audio: boolean; readonly video: boolean };
  readonly muted: { readonly audio: boolean; readonly video: boolean };
  /** Whether the broadcast began with audio: none can be added while it runs. */
  readonly sendsAudio: boolean;
  /** What keeps from broadcasting, or should be known before. */
  readonly notice: Notice | null;
  /** What is not as it should be while live. */
  readonly hint: Notice | null;
  readonly figures: Figures | null;
  /** Seconds that the broadcast is, or was, live. */
  readonly liveSeconds: number;
}

/** Whether media is on its way, or about to be. */
export function isBroadcasting({ stage }: Pick<PageState, "stage">): boolean {
  return stage === "connecting" || stage === "live" || stage === "reconnecting";
}
