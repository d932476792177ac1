/** How a broadcaster publishes. */
export const PROTOCOLS = ["rtmp", "whip"] as const;
export type Protocol = (typeof PROTOCOLS)[number];
