// The texts for a state of the page: badge, status line, the cover of an empty preview, the main button.
import { withoutArguments } from "./link.ts";
import { isBroadcasting, type PageState, type Stage } from "./state.ts";

export interface Words {
  readonly badge: string;
  /** Announced by screen readers when it changes. Empty when there is nothing to report. */
  readonly status: string;
  /** Shown in place of missing video; null when there is video. */
  readonly cover: { readonly title: string; readonly text: string } | null;
  readonly primary: {
    readonly label: string;
    readonly does: "open" | "go-live" | "cancel" | "end";
    /** Pressed, and not finished yet. */
    readonly isBusy: boolean;
  };
}

const BADGES: Readonly<Record<Stage, string>> = {
  off: "Off air",
  opening: "Off air",
  ready: "Ready",
  connecting: "Connecting",
  live: "LIVE",
  reconnecting: "Reconnecting",
  ended: "Off air",
};

export function wordsOf(state: PageState): Words {
  const { stage } = state;
  return { badge: BADGES[stage], status: statusOf(state), cover: coverOf(state), primary: primaryOf(state) };
}

/** `3:07`, `1:02:03`. */
export function clockOf(seconds: number): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** `3 min 7 s`, for screen readers. */
export function durationOf(seconds: number): string {
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor(seconds / 60) % 60;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** The stream name for display, or "" when none is given. */
export function streamOf({ link, streamName }: Pick<PageState, "link" | "streamName">): string {
  return link.kind === "token" ? link.streamName : withoutArguments(streamName.trim());
}

function statusOf(state: PageState): string {
  switch (state.stage) {
    case "off":
      return "";
    case "opening":
      return "Your browser may ask for permission.";
    case "ready":
      return state.isWaiting ? "Going live once your device is open." : "Nothing is sent until you go live.";
    case "connecting":
      return "Connecting…";
    case "live":
      // The isolates keep a title written from right to left, or marks in it, from reordering the sentence.
      return `You are live on ${state.title === null ? streamOf(state) : `\u2068${state.title}\u2069`}.`;
    case "reconnecting":
      return "The connection was lost. Trying again…";
    case "ended":
      return state.liveSeconds === 0 ? "" : `The broadcast lasted ${durationOf(state.liveSeconds)}.`;
  }
}

function coverOf(state: PageState): Words["cover"] {
  const { stage, has, muted } = state;
  if (stage === "ended") return { title: "Your broadcast has ended", text: "Camera and microphone are off." };
  if (stage === "opening")
    return { title: "Waiting for your permission", text: "Allow camera and microphone to continue." };
  if (muted.video) return { title: "Your video is hidden", text: isBroadcasting(state) ? "Viewers see black." : "" };
  if (has.video) return null;
  const isFixed = isBroadcasting(state) && !state.sendsVideo;
  if (isFixed) return { title: "There is no video", text: "Viewers can only hear you." };
  if (stage !== "off") return { title: "There is no video", text: "Choose a camera or your screen." };
  return {
    title: "See yourself before anyone else does",
    text: "Camera and microphone are off until you turn them on, and nothing is sent until you go live.",
  };
}

function primaryOf({ stage, choice, isWaiting }: PageState): Words["primary"] {
  switch (stage) {
    case "off":
    case "opening":
      return {
        label: choice.source === "screen" ? "Choose what to share" : "Turn on camera and mic",
        does: "open",
        isBusy: stage === "opening",
      };
    case "ready":
      return { label: "Go live", does: "go-live", isBusy: isWaiting };
    case "connecting":
      return { label: "Cancel", does: "cancel", isBusy: false };
    case "live":
    case "reconnecting":
      return { label: "End broadcast", does: "end", isBusy: false };
    case "ended":
      return { label: "Broadcast again", does: "open", isBusy: false };
  }
}
