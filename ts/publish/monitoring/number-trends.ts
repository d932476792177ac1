// What the numbers of the last two minutes say together: a frame rate that is unsteady, a bitrate that fell. Pure.
// Points are five seconds apart, so that no single late picture counts.

/** Points that are kept: two minutes. */
export const POINTS_SEEN = 24;
/** Points of the frame rate that are compared, 30 s, and by how much of their mean they may differ. */
const FPS_POINTS = 6;
const FPS_UNSTEADY_SHARE = 0.2;
/** The bitrate of so many points, 10 s, has fallen when it is less than this share of the two minutes'; below so many
 *  kbit/s, and before so many points, 40 s, a change means nothing. */
const FELL_POINTS = 2;
const FELL_SHARE = 0.5;
const FELL_FROM_KBPS = 300;
const FELL_KNOWN_POINTS = 8;

type Points = readonly (number | null)[];

/** Frame rates, oldest first; null where unknown. */
export function isUnsteady(fps: Points): boolean {
  const recent = known(fps.slice(-FPS_POINTS));
  if (recent.length < FPS_POINTS) return false;
  const mean = recent.reduce((sum, rate) => sum + rate, 0) / recent.length;
  const deviation = Math.sqrt(recent.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / recent.length);
  return mean > 0 && deviation / mean > FPS_UNSTEADY_SHARE;
}

/** Bitrates in kbit/s, oldest first; null where unknown. */
export function bitrateFell(kbps: Points): boolean {
  const all = known(kbps);
  const before = median(all);
  if (all.length < FELL_KNOWN_POINTS || before < FELL_FROM_KBPS) return false;
  return median(all.slice(-FELL_POINTS)) < before * FELL_SHARE;
}

/** 0 when there is none. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

const known = (values: Points): readonly number[] => values.filter((value) => value !== null);
