// The live figures as texts for people, from the metrics of the last second.
import type { Metrics } from "../webcaster/pure/metrics.ts";

/** By the element of the page that shows them (`figure-…`). */
export interface Figures {
  readonly bitrate: string;
  readonly "frame-rate": string;
  readonly resolution: string;
  readonly "round-trip": string;
  readonly loss: string;
}

/** Placeholder for a figure that is not known yet. */
const UNKNOWN = "–";

export function figuresOf({ video, audio, connection }: Metrics): Figures {
  const bitrate = (video?.bitrateBps ?? 0) + (audio?.bitrateBps ?? 0);
  const { roundTripMs = null, packetLossPercent = null } = connection ?? {};
  return {
    bitrate: bitrate === 0 ? UNKNOWN : bitrateText(bitrate),
    "frame-rate": video === null ? UNKNOWN : `${Math.round(video.framesPerSecond)} fps`,
    resolution: video?.width && video.height ? `${video.width}×${video.height}` : UNKNOWN,
    "round-trip": roundTripMs === null ? UNKNOWN : `${Math.max(1, Math.round(roundTripMs))} ms`,
    loss: packetLossPercent === null ? UNKNOWN : `${percent(packetLossPercent)} %`,
  };
}

/** `2.1 Mbps`, `640 kbps`. */
function bitrateText(bitsPerSecond: number): string {
  if (bitsPerSecond >= 1_000_000) return `${(bitsPerSecond / 1_000_000).toFixed(1)} Mbps`;
  return `${Math.round(bitsPerSecond / 1_000)} kbps`;
}

/** A little loss must not read as none. */
function percent(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : String(Math.round(value));
}
