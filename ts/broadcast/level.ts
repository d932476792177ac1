// The level of a microphone for a bar: in decibels below full scale, since hearing is logarithmic.

/** What counts as silence, dBFS. */
const FLOOR_DB = -60;
/** Above this level the audio is close to clipping, dBFS. */
const LOUD_DB = -3;

export interface Level {
  /** 0 to 1, linear in decibels. */
  readonly level: number;
  readonly isLoud: boolean;
}

/** The peak level of samples between −1 and 1. */
export function levelOf(samples: Float32Array): Level {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  const decibels = peak === 0 ? FLOOR_DB : 20 * Math.log10(peak);
  return { level: Math.min(Math.max(1 - decibels / FLOOR_DB, 0), 1), isLoud: decibels > LOUD_DB };
}
