// The state of the page at one moment. Everything displayed is derived from it (words.ts, view.ts); page.ts changes it.
import type { Figures } from "./figures.ts";
import type { Link } from "./link.ts";
import type { Notice } from "./notices.ts";
import type { Quality } from "./qualities.ts";

/** The source of the video. */
export type Source = "camera" | "screen";

/** A broadcaster's choices. An empty id lets the browser choose. */
export interface Choice {
  readonly source: Source;
  readonly cameraId: string;
  /** Null for no microphone at all. */
  readonly microphoneId: string | null;
  readonly quality: Quality;
}

/** A device as shown in a list. */
export interface Device {
  readonly id: string;
  readonly label: string;
}

export interface Devices {
  readonly cameras: readonly Device[];
  readonly microphones: readonly Device[];
}

/** The stage of a broadcast: off → opening → ready → connecting → live ⇄ reconnecting → ended → opening → … A refusal
 *  leads from connecting back to ready, every other end to ended. */
export type Stage = "off" | "opening" | "ready" | "connecting" | "live" | "reconnecting" | "ended";

export interface PageState {
  readonly stage: Stage;
  /** Whether going live waits for a device that is still opening. */
  readonly isWaiting: boolean;
  readonly link: Link;
  /** Of the stream of the link; null for none, or not known. */
  readonly title: string | null;
  /** Name of the organisation that the stream belongs to, and the address of its logo; null for none, or not known. */
  readonly organisation: string | null;
  readonly logo: string | null;
  /** As entered; unused when there is a link. */
  readonly streamName: string;
  readonly address: string;
  readonly choice: Choice;
  readonly devices: Devices;
  /** Whether the browser can share a screen, which phones cannot. */
  readonly canShareScreen: boolean;
  /** Whether there is such a track at present. */
  readonly has: { readonly audio: boolean; readonly video: boolean };
  readonly muted: { readonly audio: boolean; readonly video: boolean };
  /** Whether the broadcast started with audio, and with video: neither can be added while it runs. */
  readonly sendsAudio: boolean;
  readonly sendsVideo: boolean;
  /** What prevents broadcasting, or should be known before. */
  readonly notice: Notice | null;
  /** A problem while live. */
  readonly hint: Notice | null;
  readonly figures: Figures | null;
  /** How long the broadcast has been, or was, live, seconds. */
  readonly liveSeconds: number;
}

/** Whether camera, microphone and screen are on, and can be replaced. */
export function isCapturing({ stage }: Pick<PageState, "stage">): boolean {
  return stage === "ready" || isBroadcasting({ stage });
}

/** Whether media is being sent, or about to be. */
export function isBroadcasting({ stage }: Pick<PageState, "stage">): boolean {
  return stage === "connecting" || stage === "live" || stage === "reconnecting";
}
