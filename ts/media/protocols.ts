/** The protocols by which a broadcaster can publish. */
export const PROTOCOLS = ["rtmp", "whip"] as const;
export type Protocol = (typeof PROTOCOLS)[number];
