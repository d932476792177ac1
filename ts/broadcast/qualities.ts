// The qualities a broadcaster can choose from: matching sizes, frame rates and bitrates for H.264 in a browser.

export interface Quality {
  readonly id: "high" | "standard" | "low";
  readonly label: string;
  /** Pixels of the camera's video. A screen keeps its own size. */
  readonly width: number;
  readonly height: number;
  /** Frames per second. */
  readonly frameRate: number;
  /** Highest bitrate of the video, bit/s. */
  readonly videoBitrate: number;
}

export const QUALITIES: readonly Quality[] = [
  { id: "high", label: "High: 1080p, 4 Mbps", width: 1920, height: 1080, frameRate: 25, videoBitrate: 4_000_000 },
  { id: "standard", label: "Standard: 720p, 2 Mbps", width: 1280, height: 720, frameRate: 25, videoBitrate: 2_000_000 },
  { id: "low", label: "Low: 360p, 0.6 Mbps", width: 640, height: 360, frameRate: 25, videoBitrate: 600_000 },
];

/** The default quality. */
export const STANDARD = QUALITIES[1] as Quality;

export function qualityOf(id: string): Quality {
  return QUALITIES.find((quality) => quality.id === id) ?? STANDARD;
}
